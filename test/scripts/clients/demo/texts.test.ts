import fc from 'fast-check'
import t from 'tap'
import { fillDates, questions, readConversation } from '#scripts/clients/demo/conversation.ts'
import { excerptAround, sharedWords } from '#scripts/clients/demo/excerpt.ts'
import { wrapText } from '#scripts/clients/demo/page.ts'

t.test('the conversation is in order and past, on any day of the demo', async t => {
  const anyMoment = fc.date({
    min: new Date('2024-01-01T00:00:00Z'),
    max: new Date('2040-01-01T00:00:00Z'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(anyMoment, now => {
      const { sittings, turnText } = readConversation(now)
      const turns = sittings.flatMap(sitting => sitting.turns)
      const inOrder = turns.every(
        ({ timestamp }, index) => timestamp > (turns[index - 1]?.timestamp ?? 0),
      )
      for (const { text, answerTurnId, outdatedTurnId = answerTurnId } of questions) {
        fillDates(text, now)
        turnText(answerTurnId)
        turnText(outdatedTurnId)
      }
      return inOrder && turns.at(-1)!.timestamp < now.getTime()
    }),
    { numRuns: 200 },
  )
  const { sittings } = readConversation(new Date('2026-01-31T12:00:00Z'))
  t.ok(sittings.length >= 14)
  t.ok(sittings.flatMap(({ turns }) => turns).length >= 70)
})

t.test('dates are written out from the day of the demo', async t => {
  const now = new Date('2026-01-31T12:00:00Z')
  t.equal(fillDates('{2nd Saturday, 3 months ago}', now), 'Saturday 11 October')
  t.equal(fillDates('on {day 20, in 1 month}', now), 'on 20 February')
  t.equal(fillDates('{month, 5 months ago}', now), 'August')
  t.throws(() => fillDates('{some day}', now))
  const [first, last] = [readConversation(now).sittings[0]!, readConversation(now).sittings.at(-1)!]
  t.equal(new Date(first.at).toISOString(), '2025-05-05T19:42:00.000Z')
  t.equal(now.getTime() - last.at, 150 * 60_000)
})

t.test('lines break between words and never pass the edge', async t => {
  const words = fc.array(fc.stringMatching(/^[a-zé]{1,12}$/), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(words, fc.integer({ min: 24, max: 80 }), (words, width) => {
      const lines = wrapText(words.join(' '), width)
      t.equal(lines.join(' '), words.join(' '))
      return lines.every(line => line.length <= width)
    }),
  )
})

t.test('an excerpt keeps what the question asked for', async t => {
  const text = `${'It rained all day. '.repeat(9)}Her lessons are with Marsh. ${'We had soup. '.repeat(9)}`
  const shared = sharedWords('Who gave her a lesson?', text)
  t.same(shared, ['lessons'])
  const excerpt = excerptAround(text, shared, 60)
  t.match(excerpt, /^… .*Her lessons are with Marsh\..* …$/)
  const long = `${'on and on '.repeat(30)}the order KV-70418-R ${'and on and on '.repeat(30)}`
  const [token = ''] = sharedWords('What was KV-70418-R?', long)
  t.equal(token, 'KV-70418-R')
  const cut = excerptAround(long, [token], 80)
  t.ok(cut.includes(token))
  t.ok(cut.length <= 84)
  t.equal(excerptAround('All of it.', [], 80), 'All of it.')
  const inside = excerptAround('aaaaaaaz a. aaaaaaa aaaaaaa z? a', ['z'], 20)
  t.match(inside, 'z', 'a word that stands inside a longer one first')
  t.equal(
    excerptAround(
      'Dr. Osei is kind. She has a dog that sleeps under the desk all day.',
      ['Osei'],
      50,
    ),
    'Dr. Osei is kind. She has a dog that sleeps under …',
  )

  const anyText = fc.array(fc.stringMatching(/^[A-Z]?[a-z]{1,9}[.?]?$/), { minLength: 1 })
  fc.assert(
    fc.property(anyText, fc.nat(), fc.integer({ min: 20, max: 90 }), (parts, nth, most) => {
      const word = parts[nth % parts.length]!.replace(/[.?]$/, '')
      const excerpt = excerptAround(parts.join(' '), [word], most)
      return excerpt.includes(word) && excerpt.replaceAll('…', '').trim().length <= most
    }),
  )
})
