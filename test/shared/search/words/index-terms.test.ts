import fc from 'fast-check'
import t from 'tap'
import {
  questionMarker,
  numberMarker,
  timeMarker,
  isMarkerTerm,
  parseSpeakerPrefix,
  speakerMarker,
  termsOf,
} from '#shared/search/words/index-terms.ts'
import { anyText } from '#test/support/samples/any-text.ts'

const wordsOf = (text: string) => termsOf(text).filter(term => !isMarkerTerm(term))
const share = (one: string, other: string) => {
  const terms = new Set(wordsOf(one))
  return wordsOf(other).some(term => terms.has(term))
}

t.test('inflections and irregular forms of English have one stem', async t => {
  for (const [one, other] of [
    ['running', 'ran'],
    ['bought', 'buying'],
    ['children', 'child'],
    ['allergic', 'allergies'],
    ['decided', 'decision'],
    ['quickly', 'quick'],
    ['knives', 'knife'],
    ['two', '2'],
    ['follow-up', 'followup'],
    ["Caroline's", 'caroline'],
  ] as const)
    t.ok(share(one, other), `${one} meets ${other}`)
})

t.test('characters that are not shown divide no word', async t => {
  const word = 'Grundstücksverwalter'
  for (const mark of '\u00ad\u200b\u200e\u2060\ufeff\ufe0f\u202b')
    t.same(
      wordsOf(`mein Grund${mark}stücks${mark}verwalter`),
      wordsOf(`mein ${word}`),
      escape(mark),
    )
  t.ok(wordsOf('نمی\u200cخواهم').includes(wordsOf('نمیخواهم')[0]!), 'written without the joiner')
  t.ok(wordsOf('نمی\u200cخواهم').includes(wordsOf('خواهم')[0]!), 'a part of it')
  const khmer = 'ខ្ញុំ\u200bរស់នៅ'
  t.notSame(wordsOf(khmer), wordsOf(khmer.replace('\u200b', '')), 'words of Khmer are parted so')
  t.same(wordsOf('1\ufe0f\u20e3 buy'), ['1\ufe0f\u20e3', '1\ufe0f\u20e3*', 'buy'], 'a keycap stays')
})

t.test('the month of May is a term, the auxiliary verb is none', async t => {
  for (const text of ['The invoice of May is paid.', 'Is it paid in May?', 'due on 5 May, at noon'])
    t.ok(wordsOf(text).includes('may'), text)
  for (const text of ['May I ask?', 'I may come', 'we may'])
    t.notOk(wordsOf(text).includes('may'), text)
})

t.test('similar but unrelated words have different stems', async t => {
  for (const [one, other] of [
    ['news', 'new'],
    ['university', 'universe'],
    ['organ', 'organize'],
    ['wedding', 'wed'],
  ] as const)
    t.notOk(share(one, other), `${one} and ${other}`)
})

t.test('identifiers, addresses and versions are found whole and in parts', async t => {
  for (const [text, terms] of [
    ['call getUserName() first', ['getusernam', 'user', 'name']],
    ['set user_id', ['user_id', 'user']],
    ['see https://docs.example.org/v2/refunds.', ['https://docs.example.org/v2/refunds', 'refund']],
    ['mail ada@example.org', ['ada@example.org', 'ada']],
    ['pinned to v3.14.2', ['v3.14.2']],
    ['ticket ZX-88412', ['zx-88412', '88412']],
    ['half in C++, half in C#', ['c++', 'c#']],
    ['it costs $12,500.50', ['12500.50']],
    ['in 10km', ['10km', '10', 'km']],
    ['the 3rd of May', ['3']],
  ] as const) {
    const found = new Set(termsOf(text))
    for (const term of terms) t.ok(found.has(term), `${text}: ${term} in ${[...found].join(' ')}`)
  }
})

t.test('one spelling for case, width, accents and ligatures', async t => {
  t.same(wordsOf('ＦＵＬＬ Résumé ﬁne'), wordsOf('full resume fine'))
  t.ok(share('Straße', 'strasse'))
  t.ok(share('أكل', 'اكل'))
})

t.test('scripts without spaces match by character bigrams', async t => {
  t.ok(share('我妈妈在北京工作', '北京'))
  t.ok(share('昨日新宿で寿司を食べました', '寿司'))
  t.ok(share('ฉันชอบกินข้าว', 'กินข้าว'))
  t.ok(share('한국어를 공부합니다', '한국어'))
})

t.test('inflections of other languages match by their roots', async t => {
  for (const [one, other] of [
    ['Я вчера купила собаку', 'где моя собака'],
    ['Las niñas comieron en la casa', 'la niña de la escuela'],
    ['Ich habe die Bücher gekauft', 'Wo ist das Buch der Frau'],
    ['الطبيبة في المستشفى', 'طبيبة جديدة'],
  ] as const)
    t.ok(share(one, other), `${one} / ${other}`)
})

t.test('English texts have no roots of other languages', async t => {
  t.notOk(
    termsOf('She told me that the die was cast in Los Angeles').some(term => term.endsWith('*')),
  )
})

t.test('the speaker prefix of a turn is a marker and not a word', async t => {
  t.same(termsOf('Caroline: I paint.'), ['paint', `${speakerMarker}carolin`])
  t.same(termsOf('[Ada Lovelace] I compute'), [
    'comput',
    `${speakerMarker}ada`,
    `${speakerMarker}lovelac`,
  ])
  t.equal(parseSpeakerPrefix('Note to self: buy milk'), undefined)
  t.equal(parseSpeakerPrefix('https://example.org: down'), undefined)
  t.ok(wordsOf('Thanks, Caroline!').includes('carolin'), 'a name that is spoken to is a word')
})

t.test('markers of questions, numbers and times', async t => {
  t.ok(termsOf('Do you have a dog?').includes(questionMarker))
  t.ok(termsOf('你喜欢茶吗？').includes(questionMarker))
  t.ok(termsOf('I have three dogs').includes(numberMarker))
  t.ok(termsOf('We went there last summer').includes(timeMarker))
  t.notOk(termsOf('I like dogs').some(isMarkerTerm))
})

t.test('stop words are no terms, unless they are something else', async t => {
  t.same(wordsOf('it is what it is'), [])
  t.same(wordsOf('the IT department'), ['it', 'depart'])
  t.same(wordsOf('vitamin C'), ['vitamin', 'c'])
})

t.test('any text has terms, the same each time, without white space in them', async t => {
  fc.assert(
    fc.property(anyText({ maxLength: 200 }), text => {
      const terms = termsOf(text)
      return (
        terms.every(term => term !== '' && !/\s/.test(term)) &&
        JSON.stringify(terms) === JSON.stringify(termsOf(text))
      )
    }),
    { numRuns: 2_000 },
  )
  t.pass('2,000 texts of any characters')
})
