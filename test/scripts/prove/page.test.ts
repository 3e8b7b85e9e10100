import t from 'tap'
import { renderPage, type ProvenSection } from '#scripts/prove/page.ts'

const order = ['kills', 'tenants', 'load']

const sectionOf = (name: string, value: number, most?: number): ProvenSection => ({
  name,
  description: `What ${name} shows`,
  seconds: 3,
  figures: [{ name: 'lost', value, ...(most !== undefined && { most }) }],
  faults: [],
  facts: {
    commit: 'abc1234',
    date: new Date('2026-01-02T03:04:05Z'),
    seed: 7,
    command: 'node scripts/prove.ts',
    machine: '2 cores',
  },
})

t.test('a section of the page tells its run, its figures and whether it held', async t => {
  const page = renderPage('', [sectionOf('kills', 1_234, 0), sectionOf('load', 5)], order)
  t.match(page, '## kills: BROKEN\n\nWhat kills shows.\n')
  t.match(page, '`node scripts/prove.ts` at commit abc1234, 2026-01-02, 2 cores, seed 7: 3 s.')
  t.match(page, '| lost | 1,234 | 0 |')
  t.match(page, '## load: held')
  t.notMatch(page, 'tenants')
})

t.test('sections that were not run again stay as they are, in their order', async t => {
  const first = renderPage('', [sectionOf('load', 5), sectionOf('kills', 1)], order)
  const second = renderPage(first, [sectionOf('tenants', 2), sectionOf('load', 6)], order)
  t.same(second.match(/(?<=^## )\w+/gm), order)
  t.match(second, '| lost | 1 | |')
  t.match(second, '| lost | 6 | |')
  t.notMatch(second, '| lost | 5 | |')
  t.equal(renderPage(second, [], order), second)
})
