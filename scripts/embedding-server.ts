import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, resolve } from 'node:path'
import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import { loadModel, type LoadedModel } from '#scripts/load-embedding-model.ts'
import { runMain } from '#shared/core/process-lifecycle.ts'

const help = `Usage: npm exec -- node scripts/embedding-server.ts <folder> [options]

Serves the embedding model of a folder on this machine, without a network, as npm start does with the one that
npm run embedding-model has fetched. The service uses it as a provider:

  PROVIDERS=offline OFFLINE_BASE_URL=http://127.0.0.1:8100/v1 EMBEDDINGS=offline/<name>

  --name <name>  default: the name of the folder
  --port <n>     default: 8100; 0 takes a free one
  --host <name>  default: 127.0.0.1
  --help         this text

Exit code: 1 when the model could not be loaded, 2 for wrong options.
`

const bodyBytesMax = 32 * 1024 * 1024

const { values, positionals } = parseCommand(help, {
  name: { type: 'string' },
  port: { type: 'string', default: '8100' },
  host: { type: 'string', default: '127.0.0.1' },
})
const [folder, ...others] = positionals
const port = Number(values.port)
if (folder === undefined || others.length > 0 || !(port >= 0 && port <= 65_535)) {
  exitWithUsage(['Name one folder, and a port up to 65535'], help)
}
const name = values.name ?? basename(resolve(folder))

await runMain(async () => {
  const model = inTurn(await loadModel(folder))
  const server = createServer((request, response) => {
    answer(model, request, response).catch((error: Error) => {
      process.stderr.write(`${error.stack}\n`)
      send(response, 500, refusal('The model has failed'))
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, values.host, resolve)
  })
  const { address, port: taken } = server.address() as AddressInfo
  process.once('disconnect', () => process.exit())
  // A launcher has words of its own.
  if (process.send) process.send({})
  else process.stdout.write(`${name} is served at http://${address}:${taken}/v1\n`)
})

/** Embeds one text at a time, in the order of asking: a query waits for one text of each call, not for whole calls. */
function inTurn(model: LoadedModel): LoadedModel {
  let last: Promise<unknown> = Promise.resolve()
  return {
    ...model,
    embed(text) {
      const vector = last.then(() => model.embed(text))
      last = vector.catch(() => {})
      return vector
    },
  }
}

type Embedding = { object: 'embedding'; index: number; embedding: string | number[] }

/** As OpenAI answers `POST /v1/embeddings` and `GET /v1/models`. */
async function answer(
  model: LoadedModel,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method, url } = request
  if (method === 'GET' && url === '/v1/models')
    return send(response, 200, { object: 'list', data: [{ id: name, object: 'model' }] })
  if (method !== 'POST' || url !== '/v1/embeddings')
    return send(response, 404, refusal('There are POST /v1/embeddings and GET /v1/models'))
  const body = await readBody(request)
  if (body === undefined) return send(response, 413, refusal('The body is too long'))
  const texts = textsOf(body['input'])
  if (!texts) return send(response, 400, refusal('input must be a text, or a list of texts'))
  if (body['model'] !== name) return send(response, 404, refusal(`The model here is ${name}`))
  // Cut off, the rest of it would not be found: the service sends it again in parts.
  if (texts.some(text => model.countTokens(text) > model.tokensMax))
    return send(response, 413, refusal(`A text has more than ${model.tokensMax} tokens`))
  const data: Embedding[] = []
  for (const [index, text] of texts.entries()) {
    const vector = await model.embed(text)
    if (response.destroyed) return
    const embedding =
      body['encoding_format'] === 'base64'
        ? Buffer.from(vector.buffer).toString('base64')
        : [...vector]
    data.push({ object: 'embedding', index, embedding })
  }
  send(response, 200, { object: 'list', model: name, data })
}

const refusal = (message: string) => ({ error: { message, type: 'invalid_request_error' } })

function send(response: ServerResponse, status: number, body: object): void {
  if (response.destroyed || response.headersSent) return
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** Reads a body; undefined where it is too long, without fields where it is no JSON object. */
async function readBody(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= bodyBytesMax) chunks.push(chunk)
  }
  if (bytes > bodyBytesMax) return undefined
  try {
    return Object(JSON.parse(Buffer.concat(chunks).toString())) as Record<string, unknown>
  } catch {
    return {}
  }
}

function textsOf(input: unknown): string[] | undefined {
  const texts: unknown[] = Array.isArray(input) ? input : [input]
  const isWhole = texts.length > 0 && texts.every(text => typeof text === 'string')
  return isWhole ? texts : undefined
}
