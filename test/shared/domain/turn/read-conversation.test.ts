import t from 'tap'
import type { Message } from '#shared/domain/message-content.ts'
import { isAsideConversation, readConversation } from '#shared/domain/turn/read-conversation.ts'

const user = (content: unknown, more: object = {}): Message => ({ role: 'user', content, ...more })
const model = (content: unknown, more: object = {}): Message => ({
  role: 'assistant',
  content,
  ...more,
})
const call = { tool_calls: [{ id: 'c', type: 'function' }] }
const result: Message = { role: 'tool', content: 'The bridge is red.' }

const kept = (messages: Message[]): unknown[] =>
  readConversation(messages).messages.map(({ content }) => content)

t.test('of a tool loop the words and the final answer are kept', async t => {
  const loop = [
    user('Which colour has the bridge?'),
    model('Let me look.', call),
    result,
    model('Now the length.', call),
    result,
    model('Red.'),
    user('Thanks'),
    model('Welcome.'),
  ]
  t.same(kept(loop), ['Which colour has the bridge?', '', '', '', '', 'Red.', 'Thanks', 'Welcome.'])
  t.same(readConversation(loop).leftOut, { step: 2 })
  t.same(kept(loop.slice(0, 4)), ['Which colour has the bridge?', '', '', 'Now the length.'])
  const parts = [
    user([{ type: 'text', text: 'Which colour?' }]),
    model([
      { type: 'text', text: 'Let me look.' },
      { type: 'tool_use', id: 'c' },
    ]),
    user([
      { type: 'tool_result', content: 'red' },
      { type: 'text', text: '<system-reminder>\nBe kind.\n</system-reminder>' },
    ]),
    model([{ type: 'text', text: 'Red.' }]),
  ]
  t.same(kept(parts), ['Which colour?', '', '', 'Red.'])
  t.same(readConversation(parts).leftOut, { step: 1, reminder: 1 })
})

t.test('a reply in several messages is kept whole', async t => {
  t.same(kept([user('Hi'), model('One.'), model('Two.')]), ['Hi', 'One.', 'Two.'])
  t.same(readConversation([user('Hi'), model('One.'), model('Two.')]).leftOut, {})
})

t.test('an aside is left out with its reply, and nothing after it', async t => {
  const title = user('Generate a title for this conversation:\n')
  const aside = [title, user('"My cat is called Ada."'), model('A cat')]
  t.same(readConversation(aside).leftOut, { aside: 3 })
  t.same(kept([...aside, user('Hi'), model('Hello')]), ['', '', '', 'Hi', 'Hello'])
  t.equal(isAsideConversation([title]), true)
  t.equal(isAsideConversation([user('My cat is called Ada.')]), false)
  const system = { role: 'system', content: 'You are a title generator. You output only a title.' }
  t.same(kept([system, ...aside.slice(1)]), ['', '', ''])
})

t.test('the answer to a message that is not kept is not kept', async t => {
  const secret = user('My PIN is 1234.', { memory: false })
  const answer = model('Your PIN is 1234.')
  t.same(kept([secret, answer, user('Hi'), model('Hello')]), ['', '', 'Hi', 'Hello'])
  t.same(readConversation([secret, answer]).leftOut, { private: 1 })
  t.same(kept([secret, { ...answer, memory: true }]), ['', 'Your PIN is 1234.'])
})
