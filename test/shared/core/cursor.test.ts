import t from 'tap'
import fc from 'fast-check'
import { CursorCodec } from '#shared/core/page.ts'

const cursors = new CursorCodec('a secret of the service')
const bound = ['key', 'GET /v1/memory/list', { tier: 1 }, 7]

t.test('a cursor brings back its position', async t => {
  t.same(cursors.read(cursors.write({ at: 5, id: 'ü' }, bound), bound), { at: 5, id: 'ü' })
})

t.test('invalid: any change of a character, other filters, another secret', async t => {
  const cursor = cursors.write({ at: 1_700_000_000_000, id: '01' }, bound)
  fc.assert(
    fc.property(
      fc.nat(cursor.length - 1),
      fc.string({ minLength: 1, maxLength: 1 }),
      (at, char) => {
        const changed = cursor.slice(0, at) + char + cursor.slice(at + 1)
        if (changed === cursor) return true
        try {
          cursors.read(changed, bound)
          return false
        } catch (error) {
          return (error as { reason?: string }).reason === 'invalid'
        }
      },
    ),
    { numRuns: 1_000 },
  )
  for (const wrong of ['', '.', 'abc', `${cursor}.`, `${cursor}x`])
    t.throws(() => cursors.read(wrong, bound), { message: /cursor/, reason: 'invalid' })
  t.throws(() => cursors.read(cursor, ['other key', ...bound.slice(1)]), /cursor/)
  t.throws(() => new CursorCodec('another secret').read(cursor, bound), /cursor/)
})
