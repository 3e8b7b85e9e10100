import fc from 'fast-check'
import t from 'tap'
import { parseTimeExpressions } from '#shared/search/query/parse-time-expressions.ts'
import { parseSearchQuery } from '#shared/search/query/parse-query.ts'

/** A Friday. */
const now = Date.UTC(2026, 10, 20, 15)

const covers = (question: string, date: string, at = now) =>
  parseTimeExpressions(question, at).spans.some(
    ({ from, to }) => from <= Date.parse(date) && Date.parse(date) < to,
  )

t.test('absolute and relative times', async t => {
  for (const [question, inside, outside] of [
    ['What happened in March 2023?', '2023-03-15', '2023-05-01'],
    ['on 2023-05-07', '2023-05-07T12:00Z', '2023-05-09T12:00Z'],
    ['on 2023-05-07, its first minute in Samoa', '2023-05-06T11:00Z', '2023-05-06T09:00Z'],
    ['7 May 2023', '2023-05-07', '2023-05-09'],
    ['on May 7th, 2023', '2023-05-07', '2023-05-09'],
    ['3 May', '2021-05-03', '2021-05-05'],
    ['in May', '2022-05-20', '2022-07-01'],
    ['in 2022', '2022-08-01', '2023-03-01'],
    ['the summer of 2021', '2021-07-01', '2021-10-01'],
    ['last summer', '2026-07-01', '2025-07-01'],
    ['last winter', '2026-01-15', '2024-12-24'],
    ['between 1 and 7 July 2026', '2026-07-04', '2026-07-09'],
    ['from July 3rd to 9th, 2026', '2026-07-08', '2026-07-11'],
    ['1–7 July 2026', '2026-07-02', '2026-06-29'],
    ['what did we do 2 to 5 May', '2025-05-04', '2025-05-08'],
    ['28 Feb to 3 March', '2025-03-02', '2025-03-06'],
    ['28 Feb to 3 March', '2025-02-28', '2025-02-20'],
    ['from 30 December to 2 January', '2026-01-01', '2026-01-05'],
    ['from 30 December to 2 January 2025', '2024-12-31', '2025-12-31'],
    ['30 December 2024 to 2 January 2026', '2025-06-01', '2026-02-01'],
    ['between 28 February and 3 March 2026', '2026-03-01', '2026-03-06'],
    ['February 28 – March 3, 2026', '2026-03-01', '2026-02-20'],
    ['on 28 February 2026 and 9 March 2026', '2026-03-09', '2026-03-04'],
    ['vom 28. Februar bis 3. März 2026', '2026-03-02', '2026-03-06'],
    ['yesterday', '2026-11-19T10:00Z', '2026-11-17'],
    ['last week', '2026-11-11', '2026-11-02'],
    ['last weekend', '2026-11-15', '2026-11-13T08:00Z'],
    ['last month', '2026-10-10', '2026-11-10'],
    ['two months ago', '2026-09-20', '2026-11-10'],
    ['3 days ago', '2026-11-17T10:00Z', '2026-11-12'],
    ['in the past two weeks', '2026-11-10', '2026-10-30'],
    ['on Monday', '2026-11-16T10:00Z', '2026-11-12'],
    ['im Mai 2022', '2022-05-10', '2022-07-10'],
    ['el 3 de mayo de 2023', '2023-05-03', '2023-05-06'],
    ['2023年5月に', '2023-05-10', '2023-07-10'],
    ['gestern', '2026-11-19T10:00Z', '2026-11-17'],
  ] as const) {
    t.ok(covers(question, inside), `${question}: ${inside}`)
    t.notOk(covers(question, outside), `${question}: not ${outside}`)
  }
})

t.test('relative times are true on the first and last days of months and years', async t => {
  for (const [day, question, inside, outside] of [
    ['2028-01-31', 'last month', '2027-12-15', '2028-01-15'],
    ['2028-01-01', 'last week', '2027-12-22', '2027-12-30'],
    ['2027-03-31', 'last month', '2027-02-27', '2027-03-10'],
    ['2028-02-29', 'last year', '2027-06-01', '2028-02-01'],
    ['2028-03-01', 'yesterday', '2028-02-29', '2028-02-27'],
    ['2028-01-15', 'this winter', '2027-12-24', '2028-12-24'],
    ['2028-02-29', 'this winter', '2028-02-10', '2027-11-01'],
    ['2028-01-15', 'last winter', '2026-12-24', '2027-12-24'],
    ['2028-03-01', 'last winter', '2027-12-24', '2026-12-24'],
    ['2027-12-31', 'last winter', '2027-01-15', '2027-12-24'],
    ['2028-06-01', 'on 29 February', '2024-02-29', '2027-03-01'],
  ] as const) {
    const at = Date.parse(`${day}T12:00:00Z`)
    t.ok(covers(question, inside, at), `${question} on ${day}: ${inside}`)
    t.notOk(covers(question, outside, at), `${question} on ${day}: not ${outside}`)
  }
})

t.test('numbers and names that are no times', async t => {
  for (const question of [
    'what may I eat',
    'we march on',
    'version 2024.1 of the library',
    'room 214',
    'my last name',
    'the 31 steps',
    'on 2023-13-45',
    'on 2027-02-29',
  ])
    t.same(parseTimeExpressions(question, now).spans, [], question)
})

t.test('a query with a time only has no other terms', async t => {
  t.same(parseSearchQuery('What happened last week?', now).nonTimeTerms, [])
  t.same(parseSearchQuery('Which tax rate was it in 2023?', now).nonTimeTerms, ['tax', 'rate'])
})

t.test('role and type of answer', async t => {
  t.equal(parseSearchQuery('What did you recommend?', now).role, 'assistant')
  t.equal(parseSearchQuery('What did I say about my dog?', now).role, 'user')
  t.equal(parseSearchQuery('What does Caroline do?', now).role, undefined)
  t.ok(parseSearchQuery('How many dogs does she have?', now).wantsNumber)
  t.ok(parseSearchQuery('When did she move?', now).wantsTime)
  t.ok(parseSearchQuery('¿Cuándo nos mudamos?', now).wantsTime)
  t.equal(parseSearchQuery('Where does she currently live?', now).order, 'latest')
  t.equal(parseSearchQuery('What was the plan originally?', now).order, 'first')
})

t.test('generic query words weigh less', async t => {
  const { terms } = parseSearchQuery('What kind of trombone did she mention?', now)
  const weightOf = (term: string) => terms.find(asked => asked.term === term)?.weight ?? 0
  t.ok(weightOf('trombon') > 2 * weightOf('kind'))
  t.ok(weightOf('trombon') > 2 * weightOf('mention'))
})

t.test('any text is parsed, and its times are spans', async t => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), text => {
      const { terms, times } = parseSearchQuery(text, now)
      return (
        terms.every(({ weight }) => weight > 0 && weight <= 1) &&
        times.every(({ from, to }) => Number.isFinite(from) && from < to)
      )
    }),
    { numRuns: 1_000 },
  )
  t.pass('1,000 texts')
})
