import t from 'tap'
import type { ProxyRequest } from '#api/proxy/dialects/dialect.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import {
  samplesOfNoProgram,
  samplesWithoutWords,
  samplesWithWords,
  personsWords,
} from '#test/support/samples/harness-samples.ts'

const read = (family: ApiFormat, body: object): ProxyRequest =>
  dialects[family].parseRequest(Buffer.from(JSON.stringify(body)))

const words = { type: 'text', text: personsWords }
const reminder = {
  type: 'text',
  text: '<system-reminder>\nThe file notes.txt was changed.\n</system-reminder>',
}
const call = {
  role: 'assistant',
  content: [{ type: 'tool_use', id: 'c', name: 'look', input: {} }],
}
const result = { type: 'tool_result', tool_use_id: 'c', content: 'The bridge is red.' }
const user = (...content: object[]) => ({ role: 'user', content })
const print = (body: object, family: ApiFormat = 'anthropic') =>
  read(family, body).userTurn?.fingerprint.toString('hex')

t.test('a reminder beside the result of a tool goes on with the turn', async t => {
  const messages = [user(reminder, words), call, user(result, reminder)]
  const { userTurn, newMessages } = read('anthropic', { messages })
  t.equal(userTurn?.isToolContinuation, true)
  t.same(newMessages, [])
  t.equal(print({ messages }), print({ messages: messages.slice(0, 1) }), 'the same turn')
  const spoken = read('anthropic', { messages: [...messages.slice(0, 2), user(result, words)] })
  t.equal(spoken.userTurn?.isToolContinuation, false)
  t.same(spoken.newMessages, [{ role: 'user', content: personsWords }])
})

t.test('a program’s message is nobody’s turn, wherever it stands', async t => {
  for (const [name, sample] of Object.entries(samplesWithoutWords)) {
    if (samplesOfNoProgram.has(name)) continue
    for (const messages of [
      [user({ type: 'text', text: sample }), user(words)],
      [user(words), user({ type: 'text', text: sample })],
      [
        { role: 'user', content: sample },
        { role: 'user', content: personsWords },
      ],
    ]) {
      const { newMessages } = read('openai', { messages })
      t.same(newMessages, [{ role: 'user', content: personsWords }], name)
    }
    t.equal(
      read('openai', { messages: [user({ type: 'text', text: sample })] }).userTurn,
      undefined,
    )
  }
})

t.test('what is stored are the words alone', async t => {
  for (const [name, sample] of Object.entries(samplesWithWords)) {
    const { newMessages } = read('google', { contents: [{ parts: [{ text: sample }] }] })
    const content = samplesOfNoProgram.has(name) ? sample : personsWords
    t.same(newMessages, [{ role: 'user', content }], name)
  }
})

t.test('the print is of words, whatever reminders a client adds, renews or moves', async t => {
  const turn = (...content: object[]) => ({
    messages: [user(...content), { role: 'assistant', content: 'In src.' }, user(words)],
  })
  const plain = print(turn(words))
  t.equal(print(turn(reminder, words)), plain)
  t.equal(print(turn(words, { ...reminder, cache_control: { type: 'ephemeral' } })), plain)
  const asText = { role: 'user', content: `${reminder.text}\n${personsWords}` }
  t.equal(print({ messages: [asText, ...turn().messages.slice(1)] }), plain)
  t.not(print(turn({ ...words, text: 'Who painted it?' })), plain)
})

t.test('a streamed reply that comes back in pieces has the print of the whole', async t => {
  const asked = (...replies: string[]) => ({
    contents: [
      { role: 'user', parts: [{ text: 'Hi' }] },
      ...replies.map(text => ({ role: 'model', parts: [{ text }] })),
      { role: 'user', parts: [{ text: personsWords }] },
    ],
  })
  const whole = print(asked('Let me look "there".'), 'google')
  t.equal(print(asked('Let ', 'me look', ' "there".'), 'google'), whole)
  t.not(print(asked('Let ', 'me look', ' there.'), 'google'), whole)
})
