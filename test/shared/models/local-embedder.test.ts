import fc from 'fast-check'
import t from 'tap'
import { embed, localEmbedder } from '#shared/models/local-embedder.ts'
import { queryLengthMax } from '#shared/search/query/parse-query.ts'
import { scoreFromCosine } from '#shared/search/ranking/ranges.ts'
import { countTurns, startStepClock } from '#test/support/checks/step-clock.ts'
import { anyText } from '#test/support/samples/any-text.ts'

const embedder = localEmbedder()

function cosine(one: string, other: string): number {
  const [a, b] = [embed(one), embed(other)]
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0)
}

t.test('any text has a vector of unit length, the same each time', async t => {
  fc.assert(
    fc.property(anyText({ maxLength: 300 }), text => {
      const vector = embed(text)
      const length = Math.hypot(...vector)
      return (
        vector.length === embedder.dimension &&
        Math.abs(length - 1) < 1e-5 &&
        Buffer.from(vector.buffer).equals(Buffer.from(embed(text).buffer))
      )
    }),
    { numRuns: 1_000 },
  )
  t.equal(Math.hypot(...embed('')), 1)
})

t.test('texts that are the same score 1, those that have nothing in common 0', async t => {
  const { calibration } = embedder
  for (const text of ['ok thanks', 'to be or not to be', '😀', 'My cat is called Ada'])
    t.ok(scoreFromCosine(cosine(text, text), calibration) > 0.999, text)
  const apart = cosine('The turbine needs new bearings', 'My aunt bakes a cherry pie')
  t.equal(scoreFromCosine(apart, calibration), 0)
})

t.test('nearer in meaning is nearer in space', async t => {
  for (const [question, near, far] of [
    ['automobile', 'car', 'kitchen'],
    ['spouse', 'my wife', 'my desk'],
    ['runs', 'running', 'reading'],
    ['acountant', 'accountant', 'fountain'],
    ['Which pets does she have?', 'She adopted a cat', 'She adopted a new tone'],
    ['Who is her employer?', 'She works for a bakery', 'She swims in the lake'],
    ['我对什么过敏', '我对花生过敏', '下周我去上海'],
    ['Где работает сестра?', 'Моя сестра работает в банке', 'Вчера был дождь'],
    ['¿Dónde trabaja mi hermana?', 'Mi hermana es enfermera', 'Compramos un coche rojo'],
  ] as const)
    t.ok(cosine(question, near) > cosine(question, far) + 0.05, `${question}: ${near} / ${far}`)
})

t.test('stop words and names move a text little', async t => {
  const text = 'bought a turquoise bowl at the market'
  t.ok(cosine(text, `and so she ${text} with him`) > 0.95)
  t.ok(cosine(text, `we ${text} for Caroline`) > 0.9)
})

t.test('who speaks is no part of what is said', async t => {
  t.same(embed('Caroline: I paint'), embed('Melanie: I paint'))
})

t.test('a batch answers in order and stops when it is called off', async t => {
  const texts = Array.from({ length: 200 }, (_, i) => `memory number ${i}`)
  const vectors = await embedder.embedTexts(texts)
  t.same(vectors[137], embed(texts[137]!))
  t.same(await embedder.embedQuery(texts[5]!), vectors[5])
  await t.rejects(embedder.embedTexts(texts, AbortSignal.abort()), { name: 'AbortError' })
})

t.test('the space names itself as a part of a field path', async t => {
  t.match(embedder.space, /^[\w-]+$/)
})

/** What the first version of the space gave: another number here needs another name of the space. */
t.test('the vectors of a space never change', async t => {
  const vector = embed('My sister Hannah moved to Kiel in 2023 and studies seagrass.')
  const rounded = (index: number) => Math.round(vector[index]! * 1_000) / 1_000
  t.same([212, 403, 617, 134, 204].map(rounded), [-0.293, 0.263, 0.263, 0.251, 0.242])
})

t.test('function words of other languages hardly count in a question', async t => {
  const embedder = localEmbedder()
  const cosine = async (question: string, text: string): Promise<number> => {
    const vector = await embedder.embedQuery(question)
    const [other] = await embedder.embedTexts([text])
    return vector.reduce((sum, value, i) => sum + value * other![i]!, 0)
  }
  for (const [question, answer, unrelated] of [
    [
      'Qual é o nome da minha tia?',
      'A minha tia tem o nome Carla.',
      'A viagem da minha prima é a 2 de maio.',
    ],
    ['Was macht meine Tante?', 'Meine Tante macht Töpferei.', 'Was ist mit meinem Schlüssel?'],
    ['У меня есть кошка?', 'У меня кошка Муся.', 'В мае у меня был отпуск.'],
  ] as const) {
    t.ok((await cosine(question, unrelated)) < 0.2, unrelated)
    t.ok((await cosine(question, answer)) > 0.4, answer)
  }
  const english = 'Where is the key of my grandmother?'
  t.same(await embedder.embedQuery(english), (await embedder.embedTexts([english]))[0])
  const [one, two] = await embedder.embedQueries([english, 'Was macht meine Tante?'])
  t.same(one, await embedder.embedQuery(english))
  t.same(two, await embedder.embedQuery('Was macht meine Tante?'))
  t.ok(Math.abs(Math.hypot(...two!) - 1) < 1e-5, 'unit length')
})

t.test('long texts and queries let the event loop turn at their words', async t => {
  const text = Array.from({ length: 4_000 }, (_, i) => `bird${i}`).join(' ')
  t.same(await embedder.embedTexts([text]), [embed(text)])
  const cut = await embedder.embedQuery(text.slice(0, queryLengthMax))
  startStepClock(t)
  const { turns, stop } = countTurns()
  t.same(
    await embedder.embedQueries([text, `${text} Naxos`]),
    [cut, cut],
    'as far as a ranking reads',
  )
  stop()
  t.ok(turns() > 1_000, `${turns()} turns`)
})
