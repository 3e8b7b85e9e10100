import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * A model under the addresses of three providers. A streamed chat is words until its client goes; every other call
 * is answered at once with the request's own text; a call that looks for facts of a team finds none.
 */
export class ModelProvider {
  readonly #server: Server

  constructor() {
    this.#server = createServer((request, response) => {
      const answer = async (): Promise<void> => {
        const asked = await text(request)
        const isChat = request.url!.endsWith('/chat/completions')
        if (isChat && (JSON.parse(asked) as { stream?: boolean }).stream) {
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          await streamWords(response)
          return
        }
        response.writeHead(200, { 'content-type': 'application/json' })
        const echoed = answerOf(looksForFacts(asked) ? '{"facts":[]}' : asked)
        response.end(JSON.stringify(request.url!.includes(':stream') ? [echoed] : echoed))
      }
      answer().catch(() => response.destroy())
    })
  }

  /** Its address, without a path. */
  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** @returns the variables that make it every provider of a process */
  async listen(): Promise<Record<string, string>> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    return {
      OPENAI_BASE_URL: `${this.origin}/v1`,
      ANTHROPIC_BASE_URL: this.origin,
      GOOGLE_BASE_URL: this.origin,
    }
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

/** Whether it is the first pass of an organization, whose answer has a schema. */
const looksForFacts = (asked: string): boolean =>
  asked.includes('response_format') && asked.includes(String.raw`\"turns\":`)

async function streamWords(response: ServerResponse): Promise<void> {
  for (let words = 1; words <= 200 && !response.destroyed; words++) {
    await delay(10)
    response.write(chunkOf(`word ${words} `))
  }
  response.end('data: [DONE]\n\n')
}

const chunkOf = (content: string): string =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  })}\n\n`

/** One text in the formats of all providers, and a list of models in theirs. */
const answerOf = (content: string): object => ({
  id: 'answer_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'text', text: content }],
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  output: [
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: content }] },
  ],
  candidates: [{ content: { role: 'model', parts: [{ text: content }] }, finishReason: 'STOP' }],
  data: [{ id: 'gpt-5', object: 'model' }],
  models: [{ name: 'models/gemini-2.5-flash' }],
})
