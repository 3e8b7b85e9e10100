import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

/** Short facts and notes, as people say and programs write them, each with a question that needs it. */
const pairs: [fact: string, question: string][] = [
  ['My favorite color is teal.', 'What is my favorite color?'],
  ['My favourite colour is teal.', 'Which colour do I like best?'],
  ['My dog is called Rex.', "What's my dog's name?"],
  ['I live in Lisbon.', 'Where do I live?'],
  ['I am allergic to peanuts.', 'What am I allergic to?'],
  ['I am allergic to peanuts.', 'Can you suggest a snack for me given my allergies?'],
  ['My sister Anna works at Siemens.', 'Where does Anna work?'],
  ['The project codename is Bluebird.', 'What is the project codename?'],
  ['The wifi password is hunter2.', 'what is the wifi password'],
  ['We deploy on Fridays at 5pm.', 'When do we deploy?'],
  ['The meeting with Bob is on Tuesday at 3.', 'When is my meeting with Bob?'],
  ['I prefer tabs over spaces.', 'Do I prefer tabs or spaces?'],
  ['My birthday is on March 3rd.', 'When is my birthday?'],
  ['I drive a red Volvo.', 'What car do I drive?'],
  ['My boss is named Priya.', "Who's my boss?"],
  ['I started learning Spanish in May.', 'Which language am I learning?'],
  ['The API key rotates every 90 days.', 'How often does the API key rotate?'],
  ['I weigh 80 kg.', 'How much do I weigh?'],
  ['Our database is Postgres 16.', 'Which database do we use?'],
  ['My flight to Tokyo leaves at 9am.', 'What time is my flight?'],
  ['User prefers concise answers.', 'How should you answer me?'],
  ['Favorite food: ramen.', 'what food do i like'],
  ['The capital of France is Paris.', 'What is the capital of France?'],
  ['Bring the blue umbrella to the office.', 'Which umbrella should I bring?'],
  ['The gate code is 4471.', 'gate code?'],
  ['I met Clara at the conference in Oslo.', 'Who did I meet in Oslo?'],
  ['I quit smoking two years ago.', 'When did I quit smoking?'],
  ['The invoice from Acme is 1,200 euros.', 'How much is the Acme invoice?'],
  ['Mein Hund heißt Bello.', 'Wie heißt mein Hund?'],
  ['Mi color favorito es el azul.', '¿Cuál es mi color favorito?'],
  ['J’habite à Lyon.', 'Où est-ce que j’habite ?'],
  ['私の犬の名前はポチです。', '私の犬の名前は何ですか？'],
  ['Lisbon is sunny.', 'I live in Lisbon.'],
  ['The tent is green.', 'What about the tent?'],
  ['I like hiking in the Alps.', 'Plan a weekend trip for me: where do I like hiking?'],
  ['My cat is called Ada.', 'Tell me about my cat'],
  ['The secret ingredient is cardamom.', 'What was the secret ingredient?'],
  ['My doctor is Dr. Weiss.', 'who is my doctor'],
  ['Remember that the vendor contract ends in June 2027.', 'When does the vendor contract end?'],
  ['Favorite color: teal', 'What is my favorite color?'],
  ['Prefers dark mode.', 'Do I like dark mode or light mode?'],
  ['Allergic to nuts.', 'Can I eat nuts?'],
  ['Works as a nurse.', 'What do I work as?'],
  ['User likes sushi.', 'Do I like sushi?'],
  ['Has two kids, Tom and Mia.', 'What are my kids called?'],
  ['Prefers answers in bullet points.', 'How do I prefer answers?'],
  ['Diet: vegetarian.', 'Suggest a vegetarian dinner for me'],
  ['Uses Neovim with LazyVim.', 'Which editor config do I use with Neovim?'],
  ['Shoe size 43.', 'What is my shoe size?'],
  ['Passport expires 2028-05-01.', 'When does my passport expire?'],
  ['Dentist appointment on June 5.', 'When is my dentist appointment?'],
  ['Team stand-up is at 9:15 daily.', 'When is our stand-up?'],
  ['The staging cluster runs in eu-west-1.', 'Where does our staging cluster run?'],
  ['Budget for the kitchen: 12,000 euros.', 'What is my budget for the kitchen?'],
  ['Rex is a labrador.', 'What breed is my dog Rex?'],
  ['Gym membership at FitX costs 25 euros.', 'How much do I pay for my gym membership?'],
  ['Password hint: first pet.', 'What is my password hint?'],
  [
    'Python is the main language of the project.',
    'I want to start on the project, which language?',
  ],
  ['Deadline for the thesis is April 30.', 'I must finish my thesis. When is it due?'],
  ['The blue folder holds the tax papers.', 'Where did I put the tax papers?'],
  ['Blood type O negative.', 'What is my blood type?'],
  ['Likes jazz and bossa nova.', 'Recommend music that I like'],
  ['Wife Sara is a teacher.', 'What does my wife do?'],
  ['Morning runs at 6.', 'At what time do I run?'],
  ['Hates cilantro.', 'Is there any herb I hate?'],
  ['Mother tongue is Portuguese.', 'What is my mother tongue?'],
  ['Estudia medicina.', '¿Qué me gustaría estudiar, medicina?'],
  ['Habla polaco.', '¿Me puedes decir si hablo polaco?'],
  ['Usa Neovim.', '¿Me conviene usar Neovim?'],
  ['Spricht Polnisch.', 'Spreche ich Polnisch?'],
  ['Déteste les choux.', 'Est-ce que je déteste les choux ?'],
]

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
  'The weather was nice at the lake.',
  'I bought new shoes for running.',
  'We talked about the budget for next year.',
  'The train was late again this morning.',
  'My neighbour plays the trumpet.',
  'Dinner at eight with the Millers.',
  'The printer is out of toner.',
  'I read a book about whales.',
  'The garden needs water.',
  'We need a new router in the cellar.',
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

t.test('200: a short fact is in the block of the question that needs it', async t => {
  for (const [fact, question] of pairs) {
    const context = await (await createAsker([fact, ...others]))(question)
    t.ok(context?.includes(fact), `${fact} | ${question}`)
  }
})

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
