import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent, request as send } from 'undici'

/** The floor of a proxy: Node's server and undici, which hand on bytes and headers and read none of them. */

const upstream = process.env.MODEL_URL!
const dispatcher = new Agent()

const server = createServer((request, response) => {
  const { 'content-type': type = '', 'content-length': length } = request.headers
  const headers = {
    'content-type': type,
    authorization: 'Bearer sk',
    ...(length && { 'content-length': length }),
  }
  send(upstream + request.url, { method: 'POST', headers, body: request, dispatcher }).then(
    answer => {
      response.writeHead(answer.statusCode, answer.headers as Record<string, string>)
      answer.body.pipe(response)
    },
    () => response.destroy(),
  )
})
server.listen(0, '127.0.0.1', () =>
  process.send?.({ port: (server.address() as AddressInfo).port }),
)
process.once('SIGTERM', () => process.exit())
