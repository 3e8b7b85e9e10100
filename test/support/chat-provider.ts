import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export type ChatCall = {
  path: string
  authorization: string | undefined
  body: {
    model: string
    messages: { role: string; content: string }[]
    response_format?: { type: string; json_schema?: { schema: object } }
  }
}

/** What a model says to a question; an object with a status is an error of the provider. */
type ScriptedReply = (asked: ChatCall) => ReplyContent | Promise<ReplyContent>

type ReplyContent = string | { status: number; message: string }

export type ChatProvider = {
  /** Where it listens, without a path. */
  origin: string
  readonly calls: ChatCall[]
  /** Answers the next questions one by one, and all that follow like the last. */
  script(...says: ScriptedReply[]): void
}

/** A model provider on loopback that speaks the OpenAI chat protocol, under any path, by a script. */
export async function startChatProvider(t: Test): Promise<ChatProvider> {
  const asked: ChatCall[] = []
  let queue: ScriptedReply[] = []

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { authorization } = request.headers
    const body = JSON.parse(Buffer.concat(chunks).toString()) as ChatCall['body']
    asked.push({ path: request.url ?? '', authorization, body })
    const says = queue.length > 1 ? queue.shift() : queue[0]
    const said = (await says?.(asked.at(-1)!)) ?? { status: 500, message: 'nothing to say' }
    response.setHeader('content-type', 'application/json')
    if (typeof said === 'object') {
      response.writeHead(said.status)
      return void response.end(JSON.stringify({ error: { message: said.message } }))
    }
    response.end(
      JSON.stringify({
        object: 'chat.completion',
        model: body.model,
        choices: [
          { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: said } },
        ],
        usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
      }),
    )
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(
    () =>
      new Promise(resolve => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: asked,
    script(...says) {
      queue = says
      asked.length = 0
    },
  }
}
