import t from 'tap'
import { sweepAll } from '#workers/sweep-all.ts'
import { startJobWorkers } from '#test/support/start/api.ts'
import { recordedSessions, type RecordedCall } from '#test/support/samples/agent-sessions.ts'
import { insertMemories, readDocuments } from '#test/support/start/insert-memories.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'

/** What agents and chat programs send around a person's words, and what is stored of it. */

const world = await startProxyFixture(t)
const { backend, base, provider, newKey } = world
await startJobWorkers(backend)

type Answered = { status: string; leftOut: string | null; sent: string }

async function send(key: string, { path, headers, body, reply }: RecordedCall): Promise<Answered> {
  provider.respondAlways(respondJson(reply))
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-memory-key': key, ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`status ${response.status}: ${text}`)
  await waitUntilIdle(backend)
  return {
    status: response.headers.get('x-memory-status')!,
    leftOut: response.headers.get('x-memory-left-out'),
    sent: provider.requests.at(-1)!.body.toString(),
  }
}

const rowsOf = async (key: string): Promise<string[]> =>
  (await readDocuments(backend, key)).map(({ text }) => text)

for (const { client, calls, said, answers } of recordedSessions) {
  t.test(`${client}: the person's words and the final answers are stored, once each`, async t => {
    const key = await newKey()
    for (const call of calls) await send(key, call)
    await sweepAll(backend)
    await waitUntilIdle(backend)
    const rows = await readDocuments(backend, key)
    t.same(rows.map(({ text }) => text).toSorted(), [...said, ...answers].toSorted())
    t.same(
      rows.filter(({ session }) => session),
      [],
      'in the core',
    )
  })
}

const claudeCode = recordedSessions[0]!
const turnCalls = claudeCode.calls.slice(2, 5)

t.test('reminders beside results of tools change neither the block nor the prefix', async t => {
  const key = await newKey()
  await insertMemories(backend, key, [{ text: 'The notes are in notes.txt, beside heron-42.' }])
  const sent: string[] = []
  for (const call of turnCalls) {
    const answered = await send(key, call)
    t.equal(answered.status, 'ok')
    t.match(answered.leftOut, /^system-reminder=\d;characters=\d+$/)
    const at = answered.sent.indexOf('"messages":')
    sent.push(answered.sent.slice(at).replace(/\]\}$/, ''))
  }
  t.match(sent[0], 'beside heron-42')
  t.ok(sent[1]!.startsWith(sent[0]!), 'the second call goes on from the first')
  t.ok(sent[2]!.startsWith(sent[1]!), 'and the third from the second')
})

t.test('programs’ own calls have no memory, and say so', async t => {
  const key = await newKey()
  await insertMemories(backend, key, [{ text: 'The notes are in notes.txt, beside heron-42.' }])
  const [quota, title, ...others] = claudeCode.calls
  for (const call of [quota!, title!, ...others.slice(-5)]) {
    const { status, sent } = await send(key, call)
    t.equal(status, 'aside', JSON.stringify(call.body).slice(0, 120))
    t.notMatch(sent, 'memory_context')
  }
})

t.test('a loop that never ends leaves its last step', async t => {
  const stepOf = (index: number) => turnCalls.slice(0, index)
  const lastStep = 'Now let me check how long that file is.'
  const ended = await newKey()
  for (const call of stepOf(2)) await send(ended, call)
  t.same(await rowsOf(ended), [claudeCode.said[0]])
  const messages = [
    ...(turnCalls[2]!.body as { messages: object[] }).messages,
    { role: 'user', content: 'Stop. What is the weather like?' },
  ]
  const reply = { ...turnCalls[2]!.reply, content: [{ type: 'text', text: 'Sunny.' }] }
  await send(ended, { ...turnCalls[2]!, body: { ...turnCalls[2]!.body, messages }, reply })
  await sweepAll(backend)
  await waitUntilIdle(backend)
  t.same(
    (await rowsOf(ended)).toSorted(),
    [lastStep, claudeCode.said[0], 'Stop. What is the weather like?', 'Sunny.'].toSorted(),
  )
  const again = await newKey()
  for (const call of [...stepOf(2), ...stepOf(2), turnCalls[2]!]) await send(again, call)
  await sweepAll(backend)
  await waitUntilIdle(backend)
  t.notMatch((await rowsOf(again)).join('\n'), /Let me look|Now let me/)
})
