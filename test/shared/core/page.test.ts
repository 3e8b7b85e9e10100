import t from 'tap'
import { CursorCodec, pageOf, readPage } from '#shared/core/page.ts'

const numbers = [1, 2, 3, 4, 5]
const cursors = new CursorCodec('a secret of the service')
const bound = ['numbers', 'of', 'a test']
const read = async (after: number | undefined, limit: number): Promise<number[]> =>
  numbers.filter(number => number > (after ?? 0)).slice(0, limit)
const readNumbers = (limit: number, cursor?: string) =>
  readPage(cursors, { limit, cursor, bound }, read, number => number)

t.test('a page ends at its limit, and says where the next begins if there is one', async t => {
  const tenfold = (number: number): number => number * 10
  t.same(pageOf(numbers, 4, tenfold), { rows: [1, 2, 3, 4], next: 40 })
  t.same(pageOf(numbers, 5, tenfold), { rows: numbers, next: null })
  t.same(pageOf(numbers, 6, tenfold), { rows: numbers, next: null })
  t.same(pageOf([], 5, tenfold), { rows: [], next: null })
})

t.test('the pages of a list are the list, whatever the limit', async t => {
  for (const limit of [1, 2, 3, 5, 6]) {
    const seen: number[] = []
    let cursor: string | undefined
    do {
      const { rows, next } = await readNumbers(limit, cursor)
      t.ok(rows.length <= limit)
      seen.push(...rows)
      cursor = next ?? undefined
    } while (cursor !== undefined)
    t.same(seen, numbers)
  }
})

t.test('a position that is 0 is a position', async t => {
  const list = async (after: number | undefined): Promise<number[]> =>
    after === undefined ? [0, 1] : [1].filter(number => number > after)
  const first = await readPage(cursors, { limit: 1, cursor: undefined, bound }, list, row => row)
  t.same(first.rows, [0])
  const second = await readPage(
    cursors,
    { limit: 1, cursor: first.next ?? undefined, bound },
    list,
    row => row,
  )
  t.same(second, { rows: [1], next: null })
})

t.test('invalid: a cursor of another list, before anything is read', async t => {
  const { next } = await readNumbers(2)
  const other = { limit: 2, cursor: next ?? undefined, bound: ['another list'] }
  const unread = async (): Promise<number[]> => t.fail('is read') as never
  await t.rejects(
    readPage(cursors, other, unread, number => number),
    { message: /cursor/, reason: 'invalid' },
  )
})
