import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { toOkfDocument } from '#scripts/clients/export/okf-document.ts'
import { parseMarkdown } from '#scripts/clients/import/formats/okf.ts'
import type { ExportedLine } from '#shared/domain/file-types.ts'
import { startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  createKeyedClient,
  exportLines,
  importFile,
  storyLines,
} from '#test/support/start/memory-file.ts'
import { runScript } from '#test/support/start/run-script.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend, 'upload', 'import')
const { base } = await startTestApi(t, backend)
const dir = t.testdir({ empty: {}, full: { a: '' } })

const run = (script: string, args: readonly string[]) =>
  runScript(`scripts/clients/${script}.ts`, args, { DATA_DIR: join(dir, 'empty') })

const odd = [
  ' begins and ends with spaces \n',
  '\n\n---\ntype: x\n---\n',
  'CR\r\nLF \u2028 "quotes" \\ : # [x] {y}',
  '# heading\n\n```\ncode\n```',
  '.',
]

/** A story with all kinds of memories, and texts that are hard to write down. */
const lines: ExportedLine[] = [
  ...storyLines(),
  ...storyLines()
    .filter(({ tier }) => tier === 1)
    .slice(0, odd.length)
    .map(({ id, role, timestamp }, index) => ({
      id,
      tier: 1 as const,
      role,
      timestamp: timestamp + 1,
      content: odd[index]!,
      session_id: index % 2 === 0 ? null : '../../Zürich 🚲',
      metadata: { 'agent.id': 'a: b', turn: index, nice: true },
    })),
]

/** Lines without what is another vault's: ids, which memories of lineage they name, and their order. */
const comparable = (all: readonly ExportedLine[]): unknown[] => {
  const texts = new Map(all.map(({ id, content }) => [id, content]))
  return all
    .map(({ sources, ...line }) => ({
      ...line,
      id: undefined,
      ...(sources && { sources: sources.map(id => texts.get(id)).toSorted() }),
    }))
    .toSorted((one, other) => (one.content < other.content ? -1 : 1))
}

t.test('a vault becomes a bundle, and the bundle the same vault again', async t => {
  const source = await createKeyedClient(backend, base)
  await importFile(source, lines)
  const at = (key: string): string[] => ['--base-url', base, '--key', key]
  const [one, two] = [join(dir, 'one'), join(dir, 'two')]
  for (const folder of [one, two]) {
    const { code, out, err } = await run('export-file', ['--to', 'okf', folder, ...at(source.key)])
    t.equal(code, 0, err)
    t.equal(out, `complete: ${lines.length} documents in ${folder}\n`)
  }
  const files = globSync('**/*.md', { cwd: one }).toSorted()
  t.equal(files.length, lines.length + 1)
  t.same(globSync('**/*.md', { cwd: two }).toSorted(), files, 'the same names every time')
  for (const file of files) {
    const text = readFileSync(join(one, file), 'utf8')
    t.equal(readFileSync(join(two, file), 'utf8'), text)
    if (file !== 'index.md') t.match(parseMarkdown(text)?.fields, { type: /./, title: /^/ }, file)
  }
  t.equal(statSync(join(one, files[1]!)).mode & 0o077, 0, 'private')
  const reflection = files.find(file => file.startsWith('reflections/'))!
  const links = [...readFileSync(join(one, reflection), 'utf8').matchAll(/"\/([^"]+\.md)"/g)]
  t.equal(links.length, 2)
  for (const [, link] of links) t.ok(files.includes(link!), 'what it covers is linked')

  const exported = await exportLines(source)
  const target = await createKeyedClient(backend, base)
  for (const stored of [lines.length, 0]) {
    const args = ['--from', 'okf', one, ...at(target.key), '--json']
    const { code, out, err } = await run('import-file', args)
    t.equal(code, 0, err)
    t.match(JSON.parse(out), {
      status: 'complete',
      stored,
      skipped: lines.length - stored,
      left_out: [],
    })
  }
  t.same(comparable(await exportLines(target)), comparable(exported))

  const inParts = await createKeyedClient(backend, base)
  const args = ['--from', 'okf', one, ...at(inParts.key), '--part-lines', '3']
  t.match(await run('import-file', args), { code: 0 })
  t.same(comparable(await exportLines(inParts)), comparable(exported), 'lineage across the parts')
})

t.test('2 and 3: a folder in use, another format, no service', async t => {
  const at = ['--base-url', base, '--key', 'mk_unknown']
  for (const [args, words, status] of [
    [['--to', 'okf', join(dir, 'full'), ...at], /not an empty folder/, 2],
    [['--to', 'html', join(dir, 'new'), ...at], /--to must be okf/, 2],
    [['--to', 'okf', ...at], /name one folder/, 2],
    [['--to', 'okf', join(dir, 'new'), ...at], /^GET .*: 401 /, 3],
    [
      ['--to', 'okf', join(dir, 'new'), '--base-url', 'http://127.0.0.1:1', '--key', 'x'],
      /No answer/,
      3,
    ],
  ] as [string[], RegExp, number][]) {
    const { code, err } = await run('export-file', args)
    t.equal(code, status, `${args.join(' ')}: ${err}`)
    t.match(err, words)
  }
  t.match(await run('export-file', ['--help']), { code: 0, out: /^Usage: / })
})

t.test('an id of the service names no file elsewhere', async t => {
  const line = {
    id: '../../../x',
    tier: 1,
    role: 'user',
    timestamp: 0,
    content: 'x',
    session_id: null,
  }
  t.throws(() => toOkfDocument(line as never, new Map()), /id is none/)
})
