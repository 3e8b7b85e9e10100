import t from 'tap'
import { exactWords, missingWords, rowsByRareWords } from '#shared/vault/read/search/exact-words.ts'

const wordsOf = (text: string) => exactWords(text).map(({ word }) => word)
const finds = (text: string, row: string) => new RegExp(exactWords(text)[0]!.pattern, 'i').test(row)

t.test('identifiers come first, then names, then long words, and no function words', async t => {
  t.same(wordsOf('where is the serial of W-38271K that Ottokar bought?'), [
    'w-38271k',
    'ottokar',
    'serial',
    'bought',
  ])
  t.same(wordsOf('The Who'), ['the who'], 'of these alone the phrase')
  t.same(wordsOf('  '), [])
  t.equal(exactWords(Array.from({ length: 500 }, (_, n) => `word${n}`).join(' ')).length, 16)
})

t.test('a pattern is the literal word, where a word begins', async t => {
  t.ok(finds('a+b(c)[d].e*', 'see A+B(C)[D].E* there'))
  t.notOk(finds('a+b(c)', 'aab(c)'))
  t.ok(finds('otto', 'Ottokar came'))
  t.notOk(finds('otto', 'the motto'))
  t.ok(finds('東京', '今日は東京です'))
})

t.test('words that the candidates have are not looked for again', async t => {
  const row = { text: 'The boiler of Ottokar was serviced.' }
  const missing = (rows: { text: string }[]) =>
    missingWords('When was the boiler of Ottokar serviced?', rows).map(({ word }) => word)
  t.same(missing([]), ['ottokar', 'serviced', 'boiler'])
  t.same(missing([row]), ['ottokar'], 'a name may stand in others')
  t.same(missing([row, row, row, row, row]), [])
})

t.test('rows with rare words are first', async t => {
  const rows = [
    { _id: 'a', text: 'the report of the shelf' },
    { _id: 'b', text: 'another REPORT' },
    { _id: 'c', text: 'the serial W-38271K' },
    { _id: 'd', text: 'a report' },
  ]
  const words = exactWords('report W-38271K')
  t.equal(rowsByRareWords(rows, words, 10)[0], 'c')
  t.equal(rowsByRareWords(rows, words, 2).length, 2)
})
