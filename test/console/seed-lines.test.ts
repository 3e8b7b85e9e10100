import t from 'tap'
import { parseSeedFile, toSeedBatches } from '#api/console/app/org/seed-lines.ts'

const read = (name: string, content: string) => parseSeedFile(name, content).lines

t.test('JSON, JSON lines, CSV and plain text name the same memories', async t => {
  const seeds = [{ text: 'One.', tags: ['a', 'b'] }, { text: 'Two, “quoted”.' }]
  const lines = seeds.map((seed, index) => ({ line: index + 1, seed }))
  t.same(read('a.json', JSON.stringify(seeds)), lines)
  t.same(read('a', `\uFEFF ${JSON.stringify(seeds)}`), lines)
  t.same(read('a.jsonl', seeds.map(seed => JSON.stringify(seed)).join('\r\n')), lines)
  const rows = read('a.csv', 'text,tags\r\nOne.,"a, b"\r\n"Two, “quoted”.",\r\n')
  t.same(rows, [
    { line: 2, seed: { text: 'One.', tags: ['a', 'b'] } },
    { line: 3, seed: { text: 'Two, “quoted”.', tags: [] } },
  ])
  t.same(read('export', 'tags;text\na;"x\n""y"""\n\n;z'), [
    { line: 2, seed: { text: 'x\n"y"', tags: ['a'] } },
    { line: 5, seed: { text: 'z', tags: [] } },
  ])
  t.same(read('notes.txt', '[One]\n\n  Two  \n'), [
    { line: 1, seed: { text: '[One]' } },
    { line: 3, seed: { text: 'Two' } },
  ])
})

t.test('faults are named by their line, and fields that are not read', async t => {
  const content = [
    '{"text":"good","colour":"red","confidence":0.5,"metadata":{"page":4}}',
    '{"text":" "}',
    '{"tags":["a"]}',
    '{"text":"x","tags":"a"}',
    '{"text":"x","tags":["*"]}',
    '{"text":"x","confidence":2}',
    '{"text":"x","metadata":3}',
    JSON.stringify({ text: 'x'.repeat(32_001) }),
    '{"text":',
    '7',
    '"a text alone"',
  ].join('\n')
  const { lines, ignored } = parseSeedFile('a.ndjson', content)
  t.same(ignored, ['colour'])
  t.match(
    lines.map(one => ('fault' in one ? one.fault : one.seed)),
    [
      { text: 'good', confidence: 0.5, metadata: { page: 4 } },
      'its text is empty',
      'it has no text',
      'tags is no list',
      '"*" is no tag',
      /confidence/,
      /metadata/,
      /longer than 32000/,
      'it is no JSON',
      /neither an object/,
      { text: 'a text alone' },
    ],
  )
  t.match(read('a.csv', 'words\nx'), [{ line: 1, fault: /no column “text”/ }])
  t.match(read('a.csv', 'text\n"x\ny'), [{ line: 2, fault: /not closed/ }])
  t.match(read('a.csv', 'text\nx,y'), [{ line: 2, fault: /2 cells/ }])
})

t.test('requests hold 500 memories and less than 2 MiB', async t => {
  const items = (count: number, length: number) =>
    Array.from({ length: count }, () => ({ seed: { text: 'é'.repeat(length) } }))
  const sizes = (count: number, length: number) =>
    toSeedBatches(items(count, length)).map(batch => batch.length)
  t.same(sizes(1_001, 1), [500, 500, 1])
  t.same(sizes(60, 30_000), [29, 29, 2])
  t.same(sizes(0, 1), [])
})
