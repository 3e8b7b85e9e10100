import t from 'tap'
import { embed, localEmbedder } from '#shared/models/local-embedder.ts'
import { rank } from '#shared/search/ranking/rank.ts'
import { indexOf, now } from '#test/support/samples/ranked.ts'

/* A question about a time of which nothing is remembered gets nothing else instead. */

const day = 86_400_000
const { calibration } = localEmbedder()

/** Ranks memories, each so many days old, as `prepare` does. */
function search(memories: readonly [text: string, daysAgo: number][], text: string) {
  const index = indexOf(
    memories.map(([text, daysAgo], i) => ({ text, at: now - daysAgo * day + i })),
  )
  let isTimeEmpty = false
  const onAbstain = (reason: string) => (isTimeEmpty = reason === 'nothing_then')
  const query = { text, vector: embed(text), now, limit: 30, floor: true, calibration, onAbstain }
  return {
    texts: rank([index], query).map(({ memory }) => memory.text),
    isTimeEmpty: () => isTimeEmpty,
  }
}

/** Nothing of the last three weeks. */
const old: [string, number][] = [
  ['I went running in the forest this morning.', 40],
  ['We ate pizza and watched a film last week.', 45],
  ['On Friday I have dinner with Anna at the harbour.', 50],
  ['Anna signed the contract for the flat in Naxos.', 60],
  ['My week was full of meetings with the bank.', 70],
  ['We ran the quarterly report again.', 80],
]

t.test('nothing is recalled where the named time holds nothing', async t => {
  for (const question of [
    'What happened last week?',
    'What did I do last week?',
    'What did we eat last week?',
    'Did I go running yesterday?',
    'What did I run two weeks ago?',
  ]) {
    const { texts, isTimeEmpty } = search(old, question)
    t.same(texts, [], question)
    t.ok(isTimeEmpty(), question)
  }
})

t.test('a line that says nearly all that is asked is recalled', async t => {
  const { texts } = search(old, 'Did Anna sign the contract for the flat last week?')
  t.same(texts, ['Anna signed the contract for the flat in Naxos.'])
})

t.test('a line that names the time itself is recalled', async t => {
  const plans: [string, number][] = [...old, ['In March I move to Hamburg with my sister.', 100]]
  const { texts } = search(plans, 'Where do I move to in March?')
  t.match(texts[0], /Hamburg/)
  t.match(search(old, 'What do I have on Friday?').texts[0], /harbour/)
  for (const month of ['March', 'May']) {
    const bills: [string, number][] = [...old, [`The invoice of ${month} is paid.`, 100]]
    t.match(search(bills, `Was the invoice of ${month} paid?`).texts[0], /invoice/)
  }
})

t.test('where the time holds something it is told; what is not over, as before', async t => {
  const recent: [string, number][] = [...old, ['The plumber repaired the boiler.', 7]]
  const lastWeek = search(recent, 'What happened last week?')
  t.ok(lastWeek.texts.includes('The plumber repaired the boiler.'), lastWeek.texts.join(' '))
  t.notOk(lastWeek.isTimeEmpty())
  const planned: [string, number][] = [['The dentist is this week, on Thursday at nine.', 12]]
  const thisWeek = search(planned, 'When is the dentist this week?')
  t.equal(thisWeek.texts.length, 1)
  t.notOk(thisWeek.isTimeEmpty())
})
