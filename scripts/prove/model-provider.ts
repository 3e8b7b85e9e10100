import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A model that streams words until its client goes, and counts the calls that are open. */
export class ModelProvider {
  open = 0
  started = 0
  readonly #server: Server

  constructor() {
    this.#server = createServer((request, response) => {
      this.open++
      this.started++
      response.once('close', () => this.open--)
      request.resume()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      let words = 0
      const timer = setInterval(() => {
        response.write(chunkOf(`word ${++words} `))
        if (words < 200) return
        clearInterval(timer)
        response.end('data: [DONE]\n\n')
      }, 10)
      response.once('close', () => clearInterval(timer))
    })
  }

  /** @returns the base URL for clients of its API */
  async listen(): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

const chunkOf = (content: string): string =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  })}\n\n`
