import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventCount, eventIntervalMs, modelReply } from '#scripts/lab/bench/proxy/model-answer.ts'

/**
 * A model provider in a process of its own that answers at once: what a call takes beyond that is the time of what
 * stands before it. A call with `"stream":true` gets events at even intervals.
 */

const message = { role: 'assistant', content: modelReply }
const answer = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  choices: [{ index: 0, finish_reason: 'stop', message }],
  usage: { prompt_tokens: 400, completion_tokens: 80, total_tokens: 480 },
})
const answerHead = {
  'content-type': 'application/json',
  'content-length': Buffer.byteLength(answer),
}

const event = (delta: object, finish: string | null): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

function stream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  let sent = 0
  const timer = setInterval(() => {
    if (sent++ < eventCount) return void response.write(event({ content: 'word ' }, null))
    clearInterval(timer)
    response.end(`${event({}, 'stop')}data: [DONE]\n\n`)
  }, eventIntervalMs)
  response.once('close', () => clearInterval(timer))
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.once('end', () => {
    if (chunks.at(-1)?.includes('"stream":true')) return stream(response)
    response.writeHead(200, answerHead).end(answer)
  })
})
server.listen(0, '127.0.0.1', () =>
  process.send?.({ port: (server.address() as AddressInfo).port }),
)
process.once('SIGTERM', () => process.exit())
