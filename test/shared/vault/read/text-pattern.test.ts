import t from 'tap'
import { textPattern } from '#shared/vault/read/lists/listing.mongo.ts'

const finds = (search: string, text: string): boolean =>
  new RegExp(textPattern(search), 'iu').test(text)

t.test('a piece of text is found however it is spelled', async t => {
  const pairs: [string, string][] = [
    ['STRASSE', 'Die Straße ist gesperrt'],
    ['straße', 'HAUPTSTRASSE 5'],
    ['ẞ', 'Maß'],
    ['istanbul', 'İstanbul im Mai'],
    ['İstanbul', 'wir fliegen nach istanbul'],
    ['ISTANBUL', 'ıstanbul'],
    ['café', 'cafe\u0301 au lait'],
    ['ΟΔΟΣ', 'η οδος'],
    ['100% (sure)', 'I am 100% (sure) of it'],
    ['a.b|c', 'x a.b|c y'],
    ['🦊', 'a 🦊 here'],
    ['Grundstücksverwalter', 'Grund\u00adstücks\u00adver\u200bwalter'],
    ['Grund\u2060stücks', 'GRUNDSTÜCKS'.normalize('NFD')],
    ['masse', 'Mas\u00adse'],
    ['می\u200cخواهم', 'میخواهم'],
    ['I ❤ NY', 'I ❤\ufe0f NY'],
    ['\u200b', 'a\u200bb'],
  ]
  for (const [search, text] of pairs) t.ok(finds(search, text), `${search} in ${text}`)
})

t.test('other letters stay other letters', async t => {
  for (const [search, text] of [
    ['STRASE', 'Straße'],
    ['a.b', 'axb'],
    ['Mass', 'Mas'],
    ['cafe', 'caffè'],
  ] as const)
    t.notOk(finds(search, text), `${search} in ${text}`)
})
