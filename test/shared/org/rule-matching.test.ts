import t from 'tap'
import fc from 'fast-check'
import {
  fallbackNote,
  matchesRule,
  noteMax,
  truncateNote,
  withholdByAntiRules,
} from '#shared/org/base/rule-matching.ts'
import { anyText } from '#test/support/samples/any-text.ts'

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

t.test('a rule matches inflections of its words, and letters that look like theirs', async t => {
  const pairs: [string, string][] = [
    ['salary', 'The salaries of all devs are 5'],
    ['salaries', 'her salary'],
    ['layoffs', 'a layoff is planned'],
    ['hire', 'we stopped hiring'],
    ['firing', 'they fire two of us'],
    ['budget cut', 'three budget cuts'],
    ['planning', 'the plan'],
    ['box', 'two boxes'],
    ['diagnosis', 'his diagnosis'],
    ['salary', 'her s\u0430lary'],
    ['salary', 'her SALАRIES'],
    ['merger', 'the mеrgеr'],
    ['ceo', 'the СЕО said'],
    ['bonus', 'a βonυs'.replace('υ', 'u')],
    ['лицо', 'это лицо'],
    ['νόμος', 'Ο ΝΌΜΟΣ'],
  ]
  for (const [match, text] of pairs) t.ok(matchesRule(rule(match), text), `${match} in ${text}`)
  const others: [string, string][] = [
    ['salary', 'a salad'],
    ['hire', 'in Hirschau'],
    ['news', 'a new plan and a newt'],
    ['business', 'she is busy'],
    ['ring', 'a red rag'],
    ['c++', 'plan c'],
  ]
  for (const [match, text] of others) t.notOk(matchesRule(rule(match), text), `${match} in ${text}`)
})

t.test('a long text takes time in proportion to its length', async t => {
  const part = 'salarsalar salarie '
  const textOf = (length: number): string => part.repeat(Math.ceil(length / part.length))
  const long = rule('salaryman of the year')
  t.notOk(matchesRule(long, textOf(1_000_000)))
})

t.test('an anti-rule withholds the answer that it matches, or the whole turn', async t => {
  const policy = { antiRules: [rule('salary')] }
  const turn = (said: string, answer: string) => [
    { role: 'user' as const, text: said },
    { role: 'assistant' as const, text: answer },
  ]
  const open = turn('The launch is in May', 'Noted')
  const answered = turn('The office moves', 'That changes salaries')
  const said = turn('My salary is 5', 'Noted')
  t.same(withholdByAntiRules(policy, [open]), { turns: [open], withheld: null })
  const answerAlone = { turns: [open, answered.slice(0, 1)], withheld: 'answer' }
  t.same(withholdByAntiRules(policy, [open, answered]), answerAlone)
  t.same(withholdByAntiRules(policy, [said, open]), { turns: [open], withheld: 'turn' })
  const split = turn('about sal', 'ary')
  t.same(withholdByAntiRules(policy, [split]), { turns: [split], withheld: null })
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
  const property = fc.property(anyText({ maxLength: 2_000 }), text => {
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
