import { createServer } from 'node:http'
import type { Test } from 'tap'
import { listen } from '#test/support/start/listen.ts'

type ReceivedWebhook = {
  path: string
  headers: Record<string, string>
  text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test reads is what it asserts
  body: any
}

export type WebhookReceiver = {
  url: string
  received: ReceivedWebhook[]
  /** Answers with this status from now on. */
  answer(status: number): void
  /** Answers the next message with this status. */
  answerNext(status: number): void
}

/** A server for webhooks; it answers 204 until `answer` sets another status. */
export async function startWebhookReceiver(t: Test): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = []
  let status = 204
  let next: number | undefined
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const headers = request.headers as Record<string, string>
      received.push({ path: request.url ?? '', headers, text, body: JSON.parse(text) as unknown })
      response.writeHead(next ?? status).end()
      next = undefined
    })
  })
  const url = `${await listen(t, server)}/hook`
  return {
    url,
    received,
    answer: code => void (status = code),
    answerNext: code => void (next = code),
  }
}
