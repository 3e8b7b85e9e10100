import { readFileSync } from 'node:fs'
import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { inlineCodeSpans, parseTables, readSection } from '#test/support/checks/readme.ts'

/** One list of the headers beside an answer, in three places: the code, the contract and the page. */

const read = (path: string): string =>
  readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const sorted = (names: Iterable<string>): string[] =>
  [...new Set(names)].map(name => name.toLowerCase()).toSorted()

const code = read('api/proxy/response-headers.ts')
const set = sorted(
  [...code.matchAll(/'(X-[A-Za-z-]+)'(?::|\] =)/g)].map(([, name]) => name!),
).filter(
  // The header of the endpoints that count tokens alone.
  name => name !== 'x-memory-counted',
)

t.test('the page lists every header that a model call sends, and no other', async t => {
  const section = readSection(read('api/guides/switches.md'), 'What comes back beside the answer')
  const [table] = parseTables(section)
  const names = table!.rows.flatMap(([cell]) => inlineCodeSpans(cell!))
  t.ok(set.length >= 12)
  t.same(sorted(names), set)
})

t.test('and so does the contract, of every model call', async t => {
  const calls = Object.values(contractDocument.endpoints).filter(({ sends }) =>
    sends.some(name => name.toLowerCase() === 'x-memory-status'),
  )
  t.ok(calls.length >= 7)
  for (const { method, path, sends } of calls) t.same(sorted(sends), set, `${method} ${path}`)
})
