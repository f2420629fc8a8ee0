"""HTTP/1.1 on asyncio's transports and llhttp's parser: both sides of the proxy path."""
