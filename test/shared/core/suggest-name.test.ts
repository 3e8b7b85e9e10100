import t from 'tap'
import { suggestName } from '#shared/core/describe-input.ts'

const known = ['session_id', 'messages', 'limit', 'query']

t.test('a slip of the pen finds the name that was meant', async t => {
  t.equal(suggestName('sesion_id', known), 'session_id')
  t.equal(suggestName('sessionId', known), 'session_id')
  t.equal(suggestName('message', known), 'messages')
  t.equal(suggestName('limti', known), 'limit', 'neighbours swapped are one slip')
  t.equal(suggestName('lmt', known), undefined, 'two letters of three are too many')
  t.equal(suggestName('limitt', known), 'limit')
  t.equal(suggestName('QUERY', known), 'query')
})

t.test('what is like nothing finds nothing', async t => {
  t.equal(suggestName('temperature', known), undefined)
  t.equal(suggestName('', known), undefined)
  t.equal(suggestName('x'.repeat(1_000_000), known), undefined)
  t.equal(suggestName('limit', []), undefined)
})
