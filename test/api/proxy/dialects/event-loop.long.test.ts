import t, { type Test } from 'tap'
import type { ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import { readMessageContent } from '#shared/domain/turn/conversation.ts'
import { leastHold, watchEventLoop } from '#test/support/checks/event-loop.ts'

/** No turn of the event loop is long while a large request is read. It is measured in CPU of the thread. */

t.setTimeout(0)

/**
 * The collector or the compiler may fall into any turn: the shortest of some tries counts. Of 60 tries, twelve of each
 * request, on a machine with twenty busy processes none held the loop for more than 40 ms. So with 95 % fewer than
 * 3 / 60 are over a bound, and six in a row in fewer than (1 / 20) ** 6, for five requests 8 in 100 million runs.
 */
const tries = 6

const size = 18 * 1024 * 1024
const repeated = (piece: string): string =>
  piece.repeat(Math.ceil(size / piece.length)).slice(0, size)
const bodyOf = (messages: object[]): Buffer =>
  Buffer.from(JSON.stringify({ model: 'gpt-4o-mini', messages }))

/** Reads a request. @returns milliseconds of its longest turn */
async function holdOf(body: Buffer): Promise<number> {
  const stop = watchEventLoop()
  const request: ProxyRequest = await dialects.openai.parseInSlices(body)
  await request.readAhead()
  void [request.aside, request.userTurn?.fingerprint, request.newMessages, request.turns]
  await new Promise(setImmediate)
  return stop()
}

async function assertShort(t: Test, body: Buffer, ms: number): Promise<void> {
  const isShort = (hold: number) => hold < ms
  const longest = await leastHold(tries, isShort, () => holdOf(body))
  t.comment(`${longest.toFixed(0)} ms in the longest turn, of ${ms.toFixed(0)} at most`)
  t.ok(isShort(longest), `${longest.toFixed(0)} ms`)
}

/** CPU of work that is done at once. */
function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

const prose = 'My cat is called Ada, she was born in May; the vet is in Naxos. '

const texts = {
  'characters of several bytes': `é${'😀é日'.repeat(1_000)}`,
  'code blocks': `\`\`\`\n${prose}\n\`\`\`\n`,
  'echoes of our block':
    '<memory_context>\n[3 hours ago · 2026-11-20 15:15 UTC · user] x\n</memory_context>\n',
}

for (const [name, piece] of Object.entries(texts)) {
  t.test(`one message of 18 MiB: ${name}`, async t => {
    const content = repeated(piece)
    const body = bodyOf([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: prose.repeat(20_000) },
      { role: 'user', content, name: 'Ada' },
    ])
    const atOnce = cpuMs(() => void readMessageContent('user', content))
    await assertShort(t, body, Math.max(150, atOnce / 3))
  })
}

for (const [turns, length] of [
  [3_601, 5_000],
  [1, size],
] as const) {
  t.test(`${turns} turns of ${length} characters`, async t => {
    const content = (index: number) => `${index} `.padEnd(length, 'My cat is called Ada. ')
    const body = bodyOf(
      Array.from({ length: turns }, (_, index) => ({
        role: index % 2 === 0 ? 'user' : 'assistant',
        content: content(index),
      })),
    )
    const atOnce = cpuMs(() => void dialects.openai.parseRequest(body).newMessages)
    await assertShort(t, body, Math.max(100, atOnce / 3))
  })
}
