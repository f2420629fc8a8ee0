"""LangChain's ChatOpenAI against the router: chain.py URL KEY. Prints what it got, as JSON."""

import json
import sys

from langchain_openai import ChatOpenAI

url, key = sys.argv[1:]
model = ChatOpenAI(
    model="tiny", base_url=f"{url}/v1", api_key=key, max_retries=0, stream_usage=True
)
plain = model.invoke("Say hello.")
pieces = list(model.stream("Say hello."))
whole = pieces[0]
for piece in pieces[1:]:
    whole += piece
print(
    json.dumps(
        {"plain": plain.content, "text": whole.content, "usage": whole.usage_metadata},
        default=dict,
    )
)
