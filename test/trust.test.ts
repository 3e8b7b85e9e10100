import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { inlineCodeSpans, pages, parseTables, readPage } from '#test/support/checks/readme.ts'

/** What pages for a review name is there: variables, routes, tests, files, and figures of the proof. */

const reviewed = pages.filter(
  ({ file }) => file.startsWith('scripts/guides/trust/') || file === 'scripts/guides/upgrade.md',
)
const environment = new Set(
  parseTables(readPage('scripts/guides/environment.md'))[0]!.rows.flatMap(([name]) =>
    inlineCodeSpans(name!),
  ),
)
const routes = new Set(
  Object.values(contractDocument.endpoints).map(({ method, path }) => `${method} ${path}`),
)
const tables = globSync('api/contract/*.md')
  .map(file => readFileSync(file, 'utf8'))
  .join('\n')

t.equal(reviewed.length, 6)
for (const { file, text } of reviewed) {
  t.test(file, async t => {
    const spans = inlineCodeSpans(text)
    for (const code of spans) {
      const [variable] = /^[A-Z][A-Z0-9]*_[A-Z0-9_]+(?==|$)/.exec(code) ?? []
      if (variable) t.ok(environment.has(variable), variable)
      if (/^(?:GET|POST|PUT|PATCH|DELETE) \//.test(code)) t.ok(routes.has(code), code)
      const [header] = /^X-[\w-]+/.exec(code) ?? []
      if (header) t.ok(tables.includes(header), header)
      const [path] = /(?:^| )((?:scripts|test|shared|api)\/[\w./-]+)$/.exec(code) ?? []
      if (path) t.ok(existsSync(path.trim()), code)
    }
    for (const [, target] of text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
      t.ok(existsSync(join(dirname(file), target!)), target!)
    }
  })
}

t.test('figures of the proof are those of its page, and are held to there', async t => {
  const proof = new Map(
    readFileSync('test/PROOF.md', 'utf8')
      .split(/^## /m)
      .slice(1)
      .map(section => [/^\w+/.exec(section)![0], section.split('\n')]),
  )
  const told = reviewed
    .flatMap(({ text }) => parseTables(text))
    .filter(({ head }) => head.join() === 'Section,Figure,At most')
  t.equal(told.length, 2)
  for (const [section, figure, bound] of told.flatMap(({ rows }) => rows)) {
    const line = proof.get(section!)?.find(one => one.startsWith(`| ${figure} |`))
    t.equal(line, `| ${figure} | ${bound} | ${bound} |`, `${section}: ${figure}`)
  }
})

t.test('seconds of recovery are those of the proof', async t => {
  const section = readFileSync('test/PROOF.md', 'utf8').split('\n## recovery: held')[1]!
  const told = parseTables(readPage('scripts/guides/trust/high-availability.md')).find(
    ({ head }) => head.join() === 'Killed,Back after',
  )
  t.equal(told!.rows.length, 7)
  for (const [killed, seconds] of told!.rows) {
    t.ok(section.split('\n## ')[0]!.includes(`| ${killed} | ${seconds} | 60 |`), killed!)
  }
})

t.test('the checklist answers every row by a page, or says why not', async t => {
  const [checklist] = parseTables(readPage('scripts/guides/trust/questionnaire.md'))
  t.ok(checklist!.rows.length >= 25)
  for (const [ask, answer] of checklist!.rows) {
    t.match(
      answer,
      /^(?:yes|no, because|not yet, because|in part|by your|secrets|metrics|MIT|\[)/,
      ask!,
    )
  }
})
