import t from 'tap'
import { buildKey, createTestClient } from '#test/support/api.ts'
import { insertMemories } from '#test/support/insert-memories.ts'
import { startService } from '#test/support/service.ts'

/** Notes of one person each, as a label and a value, with questions that need them. */
const people: Record<string, [note: string, ...questions: string[]][]> = {
  english: [
    ['Name: Ada', 'What is my name?', 'Do you remember my name?'],
    ['Location: Berlin', 'Where do I live?', 'Which city do I live in?'],
    ['Job: nurse', 'What do I do for a living?', 'What is my profession?'],
    ['Diet: vegan', 'What is my diet?', "What don't I eat?"],
    ['Birthday: 3 May', 'When is my birthday?', 'When was I born?'],
    ['Wife: Sonja', 'Who am I married to?'],
    ['Time zone: Europe/Berlin', 'What time zone am I in?'],
  ],
  'several lines': [
    ['- name: Kwame\n- city: Accra\n- role: engineer', 'What is my name?', 'Where do I live?'],
  ],
  german: [
    ['Name: Jonas', 'Wie heiße ich?'],
    ['Wohnort: Bremen', 'Wo wohne ich?'],
    ['Beruf: Schreiner', 'Was arbeite ich?'],
    ['Ernährung: vegetarisch', 'Esse ich Fleisch?'],
  ],
  spanish: [
    ['Nombre: Lucía', '¿Cómo me llamo?'],
    ['Ciudad: Valencia', '¿Dónde vivo?'],
    ['Profesión: enfermera', '¿A qué me dedico?'],
  ],
  french: [
    ['Prénom : Camille', 'Comment je m’appelle ?'],
    ['Ville : Nantes', 'Où est-ce que j’habite ?'],
    ['Métier : boulangère', 'Quel est mon métier ?'],
  ],
}

const others = [
  'The name of the new café is Blau.',
  'My sister lives in Madrid.',
  'The train was late again this morning.',
  'My neighbour plays the trumpet.',
  'I read a book about whales.',
  'The garden needs water.',
]

const { backend, base } = await startService(t, { jobs: [] })

async function createAsker(texts: string[]) {
  const key = await buildKey(backend)
  await insertMemories(
    backend,
    key,
    texts.map(text => ({ text })),
  )
  return async (question: string): Promise<string | null> => {
    const { body } = await createTestClient(base, key).post('/v1/memory/prepare', {
      messages: [{ role: 'user', content: question }],
    })
    return body.context
  }
}

for (const [name, notes] of Object.entries(people)) {
  t.test(`200: a note with a label is in the block of the question for it: ${name}`, async t => {
    const ask = await createAsker([...notes.map(([note]) => note), ...others])
    for (const [note, ...questions] of notes) {
      for (const question of questions) {
        const context = await ask(question)
        for (const line of note.split('\n'))
          t.ok(context?.includes(line), `${line} | ${question} | ${context}`)
      }
    }
  })
}

t.test('200: a label is no answer to a question for something else', async t => {
  const ask = await createAsker(['Name: Ada', 'Job: nurse', ...others])
  for (const question of [
    'What is my blood type?',
    'Wo wohne ich?',
    '¿Dónde vivo?',
    'How tall am I?',
  ])
    t.equal(await ask(question), null, question)
  t.notOk((await ask("What is my husband's name?"))?.includes('Ada'))
})

t.test('200: a sentence with a name is found as before, beside a note too', async t => {
  const ask = await createAsker(['My name is Ada.', 'Nickname: Adi', ...others])
  t.match(await ask('What is my name?'), 'My name is Ada.')
})
