import t from 'tap'
import { parseTurns } from '#shared/domain/turn/conversation.ts'
import { recentTurns } from '#shared/vault/read/prepare/conversation-question.ts'

/** Messages that count how often their content is read. */
function countedMessages(count: number, length: number, roleOf: (index: number) => string) {
  const state = { reads: 0 }
  const messages = Array.from({ length: count }, (_, index) => ({
    role: roleOf(index),
    get content() {
      state.reads++
      return `${index} `.padEnd(length, 'x')
    },
  }))
  return { messages, state }
}

const inTurn = (index: number) => (index % 2 === 0 ? 'user' : 'assistant')

t.test('a short conversation is read as a whole', async t => {
  const { messages } = countedMessages(20, 100, inTurn)
  const said = messages.map(({ role, content }) => ({ role, content }))
  t.same(recentTurns(messages), parseTurns(said))
  const noUser = countedMessages(3, 100, () => 'assistant').messages
  t.equal(recentTurns(noUser).length, 3)
  t.same(recentTurns([]), [])
})

t.test('of a long one the newest million characters are read, and no other message', async t => {
  const { messages, state } = countedMessages(4_000, 5_000, inTurn)
  const turns = recentTurns(messages)
  t.equal(state.reads, 201)
  t.equal(turns.length, 201)
  t.match(turns.at(-1)?.text, /^3999 /)
})

t.test('the question and the turns before it are read wherever they stand', async t => {
  const { messages, state } = countedMessages(2_000, 5_000, index =>
    index <= 500 ? inTurn(index) : 'assistant',
  )
  const turns = recentTurns(messages)
  const question = turns.findLastIndex(({ role }) => role === 'user')
  const texts = turns.slice(question - 4, question + 1).map(({ text }) => text.slice(0, 4))
  t.same(texts, ['496 ', '497 ', '498 ', '499 ', '500 '])
  t.equal(state.reads, 206)
})
