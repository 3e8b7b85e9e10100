import t from 'tap'
import { nearestName } from '#shared/core/suggest-name.ts'

const known = ['session_id', 'messages', 'limit', 'query']

t.test('a slip of the pen finds the name that was meant', async t => {
  t.equal(nearestName('sesion_id', known), 'session_id')
  t.equal(nearestName('sessionId', known), 'session_id')
  t.equal(nearestName('message', known), 'messages')
  t.equal(nearestName('limti', known), 'limit', 'neighbours swapped are one slip')
  t.equal(nearestName('lmt', known), undefined, 'two letters of three are too many')
  t.equal(nearestName('limitt', known), 'limit')
  t.equal(nearestName('QUERY', known), 'query')
})

t.test('what is like nothing finds nothing', async t => {
  t.equal(nearestName('temperature', known), undefined)
  t.equal(nearestName('', known), undefined)
  t.equal(nearestName('x'.repeat(1_000_000), known), undefined)
  t.equal(nearestName('limit', []), undefined)
})
