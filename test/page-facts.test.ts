import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { readConfig } from '#shared/core/config.ts'
import { builtInNames } from '#shared/core/provider-registry.ts'
import { jobNames, jobOptions } from '#shared/domain/jobs.ts'
import {
  inlineCodeSpans,
  pages,
  parseSnippets,
  parseTables,
  readPage,
  readSection,
} from '#test/support/checks/readme.ts'

/** What pages name is there: links, paths, commands with their options, endpoints, headers, variables, figures. */

const root = fileURLToPath(new URL('..', import.meta.url))
const snippets = pages.flatMap(parseSnippets)
const everything = pages.map(({ text }) => text).join('\n')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }

t.test('blocks are run, or say why not', async t => {
  for (const { language, title, reason } of snippets) {
    t.ok(['sh', 'ts', 'json'].includes(language) || reason, `${title}: ${language}`)
    if (reason) t.ok(reason.length > 20, `${title}: ${reason}`)
  }
})

t.test('the first page is short, and links lead somewhere', async t => {
  t.ok(readPage('README.md').split('\n').length <= 211, 'at most 210 lines')
  for (const { file, text } of pages) {
    for (const [, target] of text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
      t.ok(existsSync(join(root, dirname(file), target!)), `${file} links ${target}`)
    }
  }
})

t.test('the board is the board of the code', async t => {
  const [board] = parseTables(readSection(readPage('workers/README.md'), 'The queue board'))
  const rows = new Map(board!.rows.map(cells => [inlineCodeSpans(cells[0]!)[0]!, cells]))
  t.same([...rows.keys()].toSorted(), jobNames.toSorted())
  for (const name of jobNames.filter(name => rows.has(name))) {
    const { concurrency, batchSize } = jobOptions[name]
    t.equal(rows.get(name)![2], `${concurrency} × ${batchSize}`, name)
  }
})

t.test('every variable of the environment is in the table, and no other', async t => {
  const read = new Set<string>()
  const asking = new Proxy({}, { get: (_, name) => void read.add(String(name)) })
  t.throws(() => readConfig(asking))
  const named = [...read].filter(name => !/^(?!RERANK_).*_(API_KEY|BASE_URL|MODELS)$/.test(name))
  const [table] = parseTables(readPage('scripts/guides/environment.md'))
  const written = table!.rows.flatMap(([name]) => inlineCodeSpans(name!))
  t.same(
    written.toSorted(),
    [...named, 'DATA_DIR', '<NAME>_API_KEY', '<NAME>_BASE_URL', '<NAME>_MODELS'].toSorted(),
  )
  const providers = inlineCodeSpans(table!.rows.find(([name]) => name!.includes('<NAME>'))![2]!)
  for (const name of builtInNames) t.ok(providers.includes(name.toUpperCase()), name)
})

t.test('the map is of this tree', async t => {
  const folders: string[] = []
  let top = ''
  for (const line of /\n```\n([^]*?)\n```/
    .exec(readSection(readPage('README.md'), 'The map'))![1]!
    .split('\n')) {
    const depth = line.search(/\S/)
    // Further in, a line goes on with what the one above says.
    if (depth > 2) continue
    const indented = depth > 0
    const names = line.trim().split(/ {2,}/)[0]!.split(' ')
    for (const name of names.filter(name => name.endsWith('/'))) {
      if (!indented) top = name
      folders.push(indented ? `${top}${name}` : name)
    }
  }
  const there = [
    ...globSync('*/', { cwd: root }),
    ...globSync('{api,shared,scripts,workers}/*/', { cwd: root }),
  ]
    .map(name => `${name.replace(/\/$/, '')}/`)
    .filter(name => !name.startsWith('node_modules'))
  t.same(there.filter(name => !folders.includes(name)).toSorted(), [], 'folders without a line')
  t.same(
    folders.filter(name => globSync(name, { cwd: root }).length === 0),
    [],
    'lines without a folder',
  )
})

t.test('paths, commands and endpoints that the text names exist', async t => {
  for (const [, name] of everything.matchAll(/npm run (?:--\S+ )*([a-z-]+)/g)) {
    t.ok(Object.hasOwn(scripts, name!), `npm run ${name}`)
  }
  for (const [path] of everything.matchAll(
    /\b(?:api|shared|scripts|workers|test)\/[\w./-]*\w\b/g,
  )) {
    t.ok(globSync(path, { cwd: root }).length > 0, path)
  }
  const known = new Set(
    Object.values(contractDocument.endpoints).map(({ method, path }) => `${method} ${path}`),
  )
  const said = everything
    .split('\n')
    .filter(line => !line.startsWith('|'))
    .flatMap(inlineCodeSpans)
    .filter(code => /^(GET|POST|PUT|PATCH|DELETE) \/v1\S*$/.test(code))
  for (const code of said) t.ok(known.has(code.replace(/\?.*/, '')), code)
})

t.test('the drawings of the flows name files that exist', async t => {
  const drawn = readSection(readPage('shared/README.md'), 'Flows')
  const files = [...drawn.matchAll(/\b[a-z-]+(?:\/[\w.-]+)+\.ts\b/g)].map(([file]) => file)
  t.ok(files.length > 15)
  for (const file of files) {
    t.ok(existsSync(join(root, file)) || existsSync(join(root, 'shared', file)), file)
  }
})

t.test('a link to a heading leads to one', async t => {
  for (const { file, text } of pages) {
    for (const [, target = '', anchor] of text.matchAll(/\]\(([^)#:]*)#([^)]+)\)/g)) {
      const to = target === '' ? file : join(dirname(file), target)
      if (to.endsWith('.md')) t.ok(anchorsOf(read(to)).has(anchor!), `${file}: ${target}#${anchor}`)
    }
  }
})

/** Anchors of headings, as GitHub makes them. */
const anchorsOf = (page: string): Set<string> =>
  new Set(
    [...page.matchAll(/^#{1,4} (.+)$/gm)].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )

t.test('options of commands are those that the command knows', async t => {
  let seen = 0
  const calls = /(?:npm run (?:-s )?([a-z-]+) --|node (scripts\/[\w/.-]+\.ts)) ([^\n`|]*)/g
  for (const { file, text } of pages) {
    for (const [, name, path, rest] of text.matchAll(calls)) {
      const [program] = /scripts\/\S+\.ts/.exec(path ?? scripts[name!] ?? '') ?? []
      if (!program || file.startsWith('CHANGELOG')) continue
      const sources = [
        program,
        ...globSync(`${program.replace(/(?:-file|\/index)?\.ts$/, '')}/**/*.ts`),
      ]
        .map(read)
        .join('\n')
      for (const [option] of rest!.split(/ [|>&;#] /)[0]!.matchAll(/(?<= |^)--[a-z][a-z-]+/g)) {
        seen++
        t.ok(sources.includes(option), `${file}: ${program} ${option}`)
      }
    }
  }
  t.ok(seen > 20, `${seen} options`)
})

t.test('headers of the service that pages name are read or sent by it', async t => {
  const sources = globSync('api/**/*.{ts,md,json}', { cwd: root, exclude: ['api/guides/**'] })
    .map(read)
    .join('\n')
    .toLowerCase()
  for (const { file, text } of pages.filter(page => page.file !== 'CHANGELOG.md')) {
    // What is told as a misspelling is none of them.
    const told = text.replaceAll(/^.*nearly one of ours.*$/gm, '')
    for (const [header] of told.matchAll(/\bX-(?:Memory|Session|Provider)[\w-]*\w/g))
      t.ok(sources.includes(header.toLowerCase()), `${file}: ${header}`)
  }
})

t.test('figures of the first page are those of the page that measured them', async t => {
  const table = parseTables(readPage('README.md')).find(({ head }) => head[0] === 'Set')!
  const measured = readSection(readPage('scripts/lab/README.md'), 'Scores on public sets')
  const figures = table.rows.flatMap(row => row.join(' ').match(/\d[\d,]*(?:\.\d+)?/g) ?? [])
  t.ok(figures.length > 10)
  for (const figure of figures) t.match(measured, new RegExp(`\\b${figure}\\b`), figure)
})

t.test('the bound of lines that pages name is the one that is held', async t => {
  const [, bound] = /lines <= (\d\d_\d{3})/.exec(read('test/architecture.test.ts'))!
  t.match(readPage('AGENTS.md'), `the server at most ${bound!.replace('_', ',')}`)
})
