import t from 'tap'
import type { Message } from '#shared/domain/message-content.ts'
import { isAsideConversation } from '#shared/domain/turn/asides.ts'
import {
  bothHalves,
  readSentMessages,
  type StoredHalves,
} from '#shared/domain/turn/conversation.ts'
import { samplesWithoutWords, samplesWithWords } from '#test/support/samples/harness-samples.ts'

const user = (content: unknown, more: object = {}): Message => ({ role: 'user', content, ...more })
const model = (content: unknown, more: object = {}): Message => ({
  role: 'assistant',
  content,
  ...more,
})

const kept = (messages: Message[], stores: Partial<StoredHalves> = {}): unknown[] =>
  readSentMessages(messages, { ...bothHalves, ...stores }).messages.map(({ content }) => content)

t.test('what a client sends is stored as it was sent', async t => {
  const { 'our own profile': profile, ...others } = samplesWithWords
  t.same(
    kept([user(profile)]),
    ['Where does the login code live? I moved it last week.'],
    'an echo',
  )
  const samples = [...Object.values(others), ...Object.values(samplesWithoutWords)]
  const { messages, leftOut } = readSentMessages(samples.map(sample => user(sample)))
  const contents = messages.map(({ content }) => content)
  t.same(contents, samples)
  t.same(leftOut, {})
  const loop = [
    user('Which colour?'),
    model('<think>\nLook.\n</think>\nLet me look.', { tool_calls: [{ id: 'c' }] }),
    { role: 'tool', content: 'red' },
    model('Red.'),
    user('Generate a title for this conversation:\n'),
    model('A colour'),
  ]
  const whole = loop.map(({ role, content }) => (role === 'tool' ? '' : content))
  t.same(kept(loop), whole)
})

t.test('a mark on a message is for that message alone', async t => {
  const secret = user('My PIN is 1234.', { memory: false })
  const exchange = [secret, model('Noted.'), user('Hi'), model('Hello', { memory: false })]
  t.same(kept(exchange), ['', 'Noted.', 'Hi', ''])
  t.same(readSentMessages(exchange).leftOut, { private: 2 })
})

t.test('input and response have a switch each', async t => {
  const exchange = [user('Hi'), model('Hello'), user('And?', { memory: false }), model('So.')]
  t.same(kept(exchange, { input: false }), ['', 'Hello', '', 'So.'])
  t.same(kept(exchange, { response: false }), ['Hi', '', '', ''])
  t.same(kept(exchange, { input: false, response: false }), ['', '', '', ''])
  t.same(kept(exchange, { responseWithInput: true }), ['Hi', 'Hello', '', ''])
  t.same(kept(exchange, { responseWithInput: true, input: false }), ['', '', '', ''])
  const both = [user('Hi'), user('PIN', { memory: false }), model('Hello'), model('Again')]
  t.same(kept(both, { responseWithInput: true }), ['Hi', '', 'Hello', 'Again'])
  const { leftOut } = readSentMessages(exchange, { ...bothHalves, input: false })
  t.same(leftOut, { input: 1, private: 1 })
})

t.test('a conversation with the prompt of a program asks for itself', async t => {
  const title = user('Generate a title for this conversation:\n')
  t.equal(isAsideConversation([title]), true)
  t.equal(isAsideConversation([user('My cat is called Ada.')]), false)
  const system = { role: 'system', content: 'You are a title generator. You output only a title.' }
  t.equal(isAsideConversation([system, user('Hi')]), true)
})
