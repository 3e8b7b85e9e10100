import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { refusal } from '#shared/core/refusal.ts'
import words from '#shared/core/refusal-words.json' with { type: 'json' }

/** Calls of `refusal` in the code, with the names of the values that they give. */
const calls = globSync('{api,workers,shared,scripts}/**/*.ts').flatMap(file =>
  [
    ...readFileSync(file, 'utf8').matchAll(
      /\brefusal\(\s*[\w'-]+,\s*'(\w+)'(?:,\s*\{((?:[^{}]|\$\{[^}]*\})*)\})?/g,
    ),
  ].map(([, name, values = '']) => ({
    name: name!,
    given: [...values.matchAll(/(?:^|,)\s*(\w+)/g)].map(([, value]) => value!).toSorted(),
  })),
)

t.test('every refusal of the table is given somewhere, with the values that its words name', t => {
  for (const [name, texts] of Object.entries(words)) {
    const named = [...texts.join('\n').matchAll(/\{(\w+)\}/g)].map(([, value]) => value!)
    const wanted = [...new Set(named)].toSorted()
    const uses = calls.filter(call => call.name === name)
    t.ok(uses.length > 0, `${name} is given`)
    for (const { given } of uses) t.same(given, wanted, name)
  }
  t.end()
})

t.test('values stand in place of their names, and are not read for names themselves', t => {
  const { reason, message, hint } = refusal('invalid', 'namesDiffer', {
    header: 'X-Session-ID',
    field: '{what}',
    what: 'sessions',
  })
  t.equal(reason, 'invalid')
  t.equal(message, 'X-Session-ID and {what} name different sessions')
  t.equal(hint, 'Name it once: in the header, the body or the query')
  t.end()
})
