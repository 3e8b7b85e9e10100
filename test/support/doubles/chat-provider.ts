import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { listen } from '#test/support/start/listen.ts'

export type ChatCall = {
  path: string
  authorization: string | undefined
  body: {
    model: string
    messages: { role: string; content: string }[]
    response_format?: { type: string; json_schema?: { schema: object } }
  }
}

/** The reply of the model to a call; an object with a status is an error of the provider. */
type ScriptedReply = (call: ChatCall) => ReplyContent | Promise<ReplyContent>

type ReplyContent = string | { status: number; message: string }

export type ChatProvider = {
  /** Its URL without a path. */
  origin: string
  readonly calls: ChatCall[]
  /** Sets the replies of the next calls; the last one is repeated. */
  script(...replies: ScriptedReply[]): void
}

/** A scripted model provider on loopback with the OpenAI chat protocol, under any path. */
export async function startChatProvider(t: Test): Promise<ChatProvider> {
  const calls: ChatCall[] = []
  let queue: ScriptedReply[] = []

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { authorization } = request.headers
    const body = JSON.parse(Buffer.concat(chunks).toString()) as ChatCall['body']
    calls.push({ path: request.url ?? '', authorization, body })
    const scripted = queue.length > 1 ? queue.shift() : queue[0]
    const reply = (await scripted?.(calls.at(-1)!)) ?? { status: 500, message: 'no script' }
    response.setHeader('content-type', 'application/json')
    if (typeof reply === 'object') {
      response.writeHead(reply.status)
      return void response.end(JSON.stringify({ error: { message: reply.message } }))
    }
    response.end(
      JSON.stringify({
        object: 'chat.completion',
        model: body.model,
        choices: [
          { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: reply } },
        ],
        usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
      }),
    )
  }
  const server = createServer((request, response) => void answer(request, response))
  return {
    origin: await listen(t, server),
    calls,
    script(...replies) {
      queue = replies
      calls.length = 0
    },
  }
}
