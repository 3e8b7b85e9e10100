import { readFileSync } from 'node:fs'
import t from 'tap'
import { languages } from '#shared/search/languages/languages.ts'

const page = readFileSync(
  new URL('../../../shared/search/languages/README.md', import.meta.url),
  'utf8',
)
const described = new Set(
  [...page.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  ),
)

t.test('the page describes every list of a language, and no other', async t => {
  const used = new Set([...languages.values()].flatMap(language => Object.keys(language)))
  used.delete('language')
  t.strictSame([...used].toSorted(), [...described].toSorted())
})

t.test('lists have the form that the page describes', async t => {
  for (const [code, language] of languages) {
    t.match(code, /^[a-z]{2}$/)
    t.equal(language.months?.length ?? 12, 12, `${code}: months`)
    for (const [list, lines] of Object.entries(language)) {
      if (!Array.isArray(lines)) continue
      const texts = lines.filter(line => typeof line === 'string')
      t.notOk(
        texts.some(line => line === '' || /^ | {2}/.test(line)),
        `${code}: ${list}`,
      )
    }
  }
})
