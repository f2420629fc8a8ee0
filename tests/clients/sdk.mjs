// OpenAI's Node SDK against the router: node sdk.mjs URL KEY. Prints what it got, as JSON.
import { createRequire } from "node:module";
const require = createRequire(`${process.env.CLIENTS}/`);
const OpenAI = require("openai").default;

const [url, key] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const asked = { model: "tiny", messages: [{ role: "user", content: "Say hello." }] };

const models = (await client.models.list()).data.map((model) => model.id);
const plain = await client.chat.completions.create(asked);
let text = "";
let usage = null;
const stream = await client.chat.completions.create({
  ...asked, stream: true, stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
const refused = await client.chat.completions
  .create({ ...asked, model: "other" })
  .catch((error) => ({ status: error.status, code: error.code, param: error.param }));
const stranger = await new OpenAI({ baseURL: `${url}/v1`, apiKey: "wrong", maxRetries: 0 }).models
  .list().catch((error) => error.constructor.name);
console.log(JSON.stringify({
  models, plain: plain.choices[0].message.content, text, usage, refused, stranger,
}));
