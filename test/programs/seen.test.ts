import t from 'tap'
import { readRows, rowsOf } from '#test/programs/seen.ts'

t.test('the guide has a row for each version that is run, with a day', async t => {
  const withoutDay = (row: string): string =>
    row.replace(/\| (?:\d{4}-\d\d-\d\d|not yet) \|$/, '|  |')
  t.same(
    readRows().map(withoutDay),
    rowsOf(() => ''),
  )
})
