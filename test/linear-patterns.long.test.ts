import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { judgeGrowth } from '#test/support/checks/growth.ts'
import { fillers, hostileParts } from '#test/support/checks/regex-fillers.ts'
import { findRegexLiterals } from '#test/support/checks/regex-literals.ts'

/*
 * No text may hold the event loop: every regular expression of the service, found in its source and among those
 * it constructs, costs in proportion to the length of the text, whatever the text is. A new one is tried without
 * being listed anywhere.
 */

/** Patterns that never see a text of another person, and why. */
const exempt = new Map([
  [
    'api/console/app/service/prometheus-samples.ts /(\\w+)="((?:[^"\\\\]|\\\\.)*)"/g',
    'reads what this service wrote at /metrics, in the browser of its operator',
  ],
])

const files = globSync(['api/**/*.ts', 'shared/**/*.ts', 'workers/**/*.ts']).toSorted()

type Found = { place: string; pattern: RegExp }

/** Where a pattern is used once, it is tried as if all of its matches were looked for. */
const toGlobal = (source: string, flags: string): RegExp =>
  new RegExp(source, `${flags.replaceAll(/[dgy]/g, '')}g`)

function literalsOf(file: string): Found[] {
  return findRegexLiterals(readFileSync(file, 'utf8')).map(({ source, flags }) => ({
    place: `${file} /${source}/${flags}`,
    pattern: toGlobal(source, flags),
  }))
}

/** What modules construct when they are loaded; a function that constructs one is to keep it outside. */
async function constructedIn(file: string): Promise<Found[]> {
  const found: Found[] = []
  const original = globalThis.RegExp
  globalThis.RegExp = new Proxy(original, {
    construct(target, [source, flags]: [string | RegExp, string | undefined]) {
      const pattern = new target(source, flags)
      found.push({ place: `${file} new /${pattern.source}/`, pattern })
      return pattern
    },
  })
  try {
    await import(`../${file}`)
  } finally {
    globalThis.RegExp = original
  }
  return found.map(({ place, pattern: { source, flags } }) => ({
    place,
    pattern: toGlobal(source, flags),
  }))
}

function faultOf({ pattern }: Found): string | undefined {
  for (const part of hostileParts(pattern)) {
    for (const kind of fillers(part, 1).keys()) {
      const fault = judgeGrowth(
        length => fillers(part, length)[kind]!,
        text => text.replace(pattern, ''),
      )
      if (fault) return `${JSON.stringify(part)}: ${fault}`
    }
  }
  return undefined
}

t.test('the patterns of a source are found among all that looks like one', async t => {
  const source = [
    "const a = b / c / d // it's /no/",
    "/* /no/ */ const e = '/no/' + \"/no/\" + `/no/${f.replace(/[/`]\\//giu, '')}/no/`",
    'const g = h! / i! / 2, j = (k) / l / m[0] / n',
    'if (o) return /p{2,}/.test(q)',
    'r.map(s => /t/y.test(s))',
  ].join('\n')
  t.same(
    findRegexLiterals(source).map(({ source, flags, line }) => `${line} ${source} ${flags}`),
    ['2 [/`]\\/ giu', '4 p{2,} ', '5 t y'],
  )
})

t.test('a pattern that is not linear is found out', async t => {
  for (const pattern of [
    /<(?=\s*\/?\s*memory_context)/g,
    /\s*(?:\r\n|\n)\s*/g,
    /\s+$/g,
    /```\s*([\s\S]*?)```/g,
    /(?:a+)+b/g,
  ]) {
    t.ok(faultOf({ place: '', pattern }), String(pattern))
  }
})

t.test('every pattern of the service costs in proportion to the text', async t => {
  const found = files.flatMap(literalsOf)
  t.ok(found.length > 200, 'the source was read')
  for (const place of exempt.keys())
    t.ok(
      found.some(one => one.place === place),
      place,
    )
  const constructing = files.filter(file => /\bRegExp\(/.test(readFileSync(file, 'utf8')))
  for (const file of constructing) found.push(...(await constructedIn(file)))
  const tried = new Set<string>()
  const faults: string[] = []
  for (const one of found) {
    if (exempt.has(one.place) || tried.has(String(one.pattern))) continue
    tried.add(String(one.pattern))
    const fault = faultOf(one)
    if (fault !== undefined) faults.push(`${one.place}: ${fault}`)
  }
  t.same(faults, [])
})
