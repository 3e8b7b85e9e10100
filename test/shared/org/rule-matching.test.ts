import t from 'tap'
import fc from 'fast-check'
import { fallbackNote, matchesRule, noteMax, truncateNote } from '#shared/org/rule-matching.ts'

const rule = (match: string) => ({ match, note: '' })

t.test('a rule matches in any writing of its words', async t => {
  const pairs: [string, string][] = [
    ['salary', 'Ada asked about her SALARY.'],
    ['Gehälter', 'die GEHÄLTER der Abteilung'],
    ['Strasse', 'in der Straße'],
    ['İstanbul', 'the istanbul office'],
    ['naïve', 'a NAI\u0308VE plan'],
    ['project x', 'Project\n\tX is late'],
    ['password', 'the pass\u200Bword'],
    ['password', 'pass\u00ADword'],
    ['ＡＢＣＤ', 'abcd'],
    ['給料', '私の給料は'],
    ['HR', 'said HR, again'],
    ['лицо', 'ЛИЦО'],
    ['c++', 'written in C++20'],
    ['rent', 'our Rental costs'],
    ['Gehalt', 'die Gehaltserhöhung'],
    ['rent', 'the current rent'],
    ['salary', '(salary)'],
    ['salary', 'the_salary'],
    ['연봉', '그의 연봉은'],
  ]
  for (const [match, text] of pairs) t.ok(matchesRule(rule(match), text), `${match} in ${text}`)
})

t.test('a rule matches from the beginning of a word on', async t => {
  const pairs: [string, string][] = [
    ['rent', 'the current plan'],
    ['rent', 'parents, Brent and Trent'],
    ['Gehalt', 'der Sachgehalt'],
    ['лицо', 'улицо'],
    ['pass word', 'bypass words'],
  ]
  for (const [match, text] of pairs) t.notOk(matchesRule(rule(match), text), `${match} in ${text}`)
})

t.test('a short word matches as a whole word only, and nothing matches nothing', async t => {
  t.notOk(matchesRule(rule('art'), 'the start of the party'))
  t.ok(matchesRule(rule('art'), 'start with art'))
  t.ok(matchesRule(rule('art'), 'Art'))
  t.notOk(matchesRule(rule('  '), 'anything'))
  t.notOk(matchesRule(rule('\u200B'), 'anything'))
})

t.test('what is put around a word never hides it', async t => {
  const property = fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (before, after) =>
    matchesRule(rule('confidential'), `${before} CONFIDENTIAL ${after}`),
  )
  fc.assert(property, { numRuns: 300 })
  t.pass('300 texts')
})

t.test('a note is short, on one line, and well-formed whatever it was', async t => {
  const property = fc.property(fc.string({ unit: 'binary', maxLength: 2_000 }), text => {
    const note = truncateNote(text)
    return (
      note.length <= noteMax &&
      !/[\n\r]/.test(note) &&
      (!text.isWellFormed() || note.isWellFormed())
    )
  })
  fc.assert(property, { numRuns: 500 })
  t.equal(truncateNote('word '.repeat(60)).slice(-6), ' word…')
  t.ok(fallbackNote(rule('x'.repeat(2_000))).length <= noteMax)
})
