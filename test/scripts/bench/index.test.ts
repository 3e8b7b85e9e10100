import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { inlineCodeSpans, parseTables, readPage, readSection } from '#test/support/readme.ts'

const root = new URL('../../../', import.meta.url)

t.test('the page has a row for every section of the bench, and for no other', async t => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['scripts/bench/index.ts', '--help'],
    { cwd: root },
  )
  const offered = Array.from(stdout.matchAll(/^ {2}([a-z][\w-]*) {2,}/gm), ([, name]) => name!)
  const [table] = parseTables(readSection(readPage('scripts/README.md'), 'Bench'))
  const written = table!.rows.flatMap(([names]) => inlineCodeSpans(names!))
  t.ok(offered.includes('search') && offered.includes('vaults'), offered.join(' '))
  t.same(written.toSorted(), offered.toSorted())
})
