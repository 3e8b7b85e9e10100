import t from 'tap'
import { Losses } from '#api/import/draft.ts'
import { splitFrontMatter } from '#api/import/formats/front-matter.ts'
import { readFromFiles, type Line } from '#test/support/samples/import-lines.ts'

const modified = Date.parse('2026-10-01T08:00:00Z')
const brief = (lines: Line[]) => lines.map(({ content, timestamp }) => [timestamp, content])
const note = (name: string, text: string) => ({ name, text, modified })

/** As Basic Memory 0.24.1 wrote it. */
const baking = `---
title: Baking
type: note
permalink: main/kitchen/baking
tags:
- bread
- home
---

My sourdough starter is called Bertha.

## Observations
- [habit] I bake every Saturday at six #baking (since spring)
- [preference] I like rye more than wheat

## Relations
- bought_from [[Mill in Werder]]`

t.test('Basic Memory: a note, and each observation of it', async t => {
  const { lines, lost, strangers } = await readFromFiles('basic-memory', [
    note('kitchen/Baking.md', baking),
  ])
  t.same({ lost, strangers }, { lost: {}, strangers: [] })
  t.same(brief(lines), [
    [
      '2026-10-01T08:00:00.000Z',
      'Baking\n\nMy sourdough starter is called Bertha.\n\n## Relations\n- bought_from [[Mill in Werder]]',
    ],
    ['2026-10-01T08:00:00.001Z', 'Baking: I bake every Saturday at six #baking (since spring)'],
    ['2026-10-01T08:00:00.002Z', 'Baking: I like rye more than wheat'],
  ])
  t.same(lines[1]!.metadata, {
    source: 'basic-memory',
    document: 'kitchen/Baking.md',
    title: 'Baking',
    type: 'note',
    permalink: 'main/kitchen/baking',
    tags: 'bread, home',
    kind: 'observation',
    category: 'habit',
    origin: 'import',
  })
})

t.test('Basic Memory: tasks, links and code are no observations', async t => {
  const text = `---\npermalink: a\n---\n- [ ] Call Ann\n- [x] Paid\n- [shop](https://shop.example) is shut\n- [fact] Ann is my aunt`
  const { lines } = await readFromFiles('basic-memory', [note('To do.md', text)])
  t.same(
    lines.map(({ content }) => content),
    [
      'To do\n\n- [ ] Call Ann\n- [x] Paid\n- [shop](https://shop.example) is shut',
      'To do: Ann is my aunt',
    ],
  )
})

t.test('Markdown: times by front matter, by name, or by the file', async t => {
  const { lines, lost } = await readFromFiles('markdown', [
    note('Boat.md', '---\ncreated: 2025-03-01T10:00\nmodified: 2026-01-01\n---\nMy boat is red.'),
    note('daily/2025-04-02.md', 'Rowed to Potsdam.'),
    note('Hat.md', '# Hat\nMy hat is blue, see [[Boat|the boat]].'),
    note('empty.md', '---\ntags: [a]\n---\n\n'),
  ])
  t.same(brief(lines), [
    [new Date('2025-03-01T10:00Z').toISOString(), 'Boat\n\nMy boat is red.'],
    ['2025-04-02T00:00:00.000Z', '2025-04-02\n\nRowed to Potsdam.'],
    ['2026-10-01T08:00:00.000Z', '# Hat\nMy hat is blue, see [[Boat|the boat]].'],
  ])
  t.match(lines[1]!.metadata, { source: 'markdown', document: 'daily/2025-04-02.md' })
  t.same(lost, { 'notes without text': 1 })
})

t.test('Markdown: a long note is a memory for each heading, outside of code', async t => {
  const long = 'A line about the garden.\n'.repeat(90)
  const text = `Intro.\n# Beds\n${long}\n\`\`\`sh\n# no heading\n\`\`\`\n## Peas\nSown in May.\n# Empty\n`
  const { lines } = await readFromFiles('markdown', [note('Garden.md', text)])
  t.same(
    lines.map(({ content, metadata }) => [metadata!.heading, content.slice(0, 21)]),
    [
      [undefined, 'Garden\n\nIntro.'],
      ['Beds', 'Garden\n\n# Beds\nA line'],
      ['Peas', 'Garden\n\n## Peas\nSown '],
    ],
  )
  t.match(lines[1]!.content, /# no heading/)
})

t.test('Markdown: what is no note is left out or counted', async t => {
  const { lines, strangers } = await readFromFiles('markdown', [note('a.md', 'x\0y')])
  t.same([lines, strangers], [[], ['a.md']])
  const big = note('b.md', 'x'.repeat(8 * 1024 * 1024 + 1))
  t.same((await readFromFiles('markdown', [big])).lost, { 'notes of more than 8 MiB': 1 })
})

t.test('front matter: scalars, lists, quotes, comments, and what is no field of one line', t => {
  const losses = new Losses()
  const text = `\uFEFF---\r
title: "A \\"red\\" boat: mine" # said so\r
aliases: ['Bob''s', "b, c", plain]\r
tags:\r
  - one\r
  - two\r
# a comment\r
source: https://example.com/#top\r
empty:\r
nested:\r
  key: value\r
---\r
Body\r
---\r
`
  t.same(splitFrontMatter(text, losses), {
    fields: {
      title: 'A "red" boat: mine',
      aliases: ["Bob's", 'b, c', 'plain'],
      tags: ['one', 'two'],
      source: 'https://example.com/#top',
      empty: [],
      nested: [],
    },
    body: 'Body\r\n---\r\n',
  })
  t.same(losses.list(), [
    { what: 'lines of front matter that are no fields of one line', count: 1 },
  ])
  for (const plain of ['Body', '---\nno end', '----\na: b\n----\n', '']) {
    t.same(splitFrontMatter(plain, losses), { fields: {}, body: plain })
  }
  t.same(splitFrontMatter('---\n---\nx', losses), { fields: {}, body: 'x' })
  t.end()
})
