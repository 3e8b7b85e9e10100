import t from 'tap'
import type { ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import {
  personsWords,
  samplesWithoutWords,
  samplesWithWords,
} from '#test/support/samples/harness-samples.ts'

const read = (messages: object[]): ProxyRequest =>
  dialects.anthropic.parseRequest(Buffer.from(JSON.stringify({ messages })))

const verbatim = (messages: object[]): ProxyRequest => {
  const request = read(messages)
  request.storeVerbatim()
  return request
}

const user = (content: unknown) => ({ role: 'user', content })
const reminder = '<system-reminder>\nUse tabs.\n</system-reminder>'
const text = (text: string) => ({ type: 'text', text })
const result = { type: 'tool_result', tool_use_id: 'c', content: 'red' }
const call = {
  role: 'assistant',
  content: [{ type: 'tool_use', id: 'c', name: 'look', input: {} }],
}

t.test(
  'verbatim: what is stored is what was sent; the turn and its print are the same',
  async t => {
    for (const [name, sample] of Object.entries({ ...samplesWithWords, ...samplesWithoutWords })) {
      const messages = [user(sample)]
      const stored = name === 'our own profile' ? personsWords : sample
      t.same(verbatim(messages).newMessages, [user(stored)], name)
      const prints = [read(messages), verbatim(messages)].map(
        ({ userTurn }) => userTurn?.fingerprint,
      )
      t.same(prints[0], prints[1], name)
    }
    const parts = [user([text(reminder), text('Who?')])]
    t.same(verbatim(parts).newMessages, [user(`${reminder}\nWho?`)])
    t.same(read(parts).newMessages, [user('Who?')])
  },
)

t.test(
  'verbatim: messages of programs alone are stored, and counted among unanswered ones',
  async t => {
    const messages = [user(reminder), user('One?'), user(reminder), user('Two?')]
    const request = verbatim(messages)
    t.same(request.newMessages, messages)
    t.same(
      request.userTurn!.unansweredBefore.map(({ messages }) => messages),
      [2],
    )
    t.same(read(messages).newMessages, [user('One?'), user('Two?')])
    t.same(
      read(messages).userTurn!.unansweredBefore.map(({ messages }) => messages),
      [1],
    )
    const loop = [user('One?'), call, user([result, text(reminder)])]
    t.same(verbatim(loop).newMessages, [user(reminder)])
    t.equal(verbatim(loop).userTurn!.isToolContinuation, true)
    t.same(read(loop).newMessages, [])
  },
)

t.test('verbatim: a long message is read whole by its thread', async t => {
  const long = `${reminder}\n${'My cat is called Ada. '.repeat(80_000)}`
  const body = Buffer.from(JSON.stringify({ messages: [user(long)] }))
  const request = await dialects.anthropic.parseInSlices(body)
  request.storeVerbatim()
  await request.readAhead()
  t.ok(request.newMessages[0]!.content === long)
})

t.test('what is left out is told of all messages of the turn, with its length', async t => {
  const { leftOut } = read([
    user(`${reminder}\nOld`),
    { role: 'assistant', content: 'Yes.' },
    user(reminder),
    user([text('Who?'), text(reminder)]),
  ])
  const piece = { mark: 'system-reminder', characters: reminder.length }
  t.same(leftOut, [piece, piece])
})
