import t from 'tap'
import { asks, startCompletions } from '#test/support/samples/completions.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'

/** What people ask of themselves, with notes of it in the same language. */
type Asked = { questions: string[]; notes: string[] }

const english = {
  name: ['Name: Ada', 'My name is Ada'],
  home: ['Home: Lisbon', 'I live in Lisbon'],
}

const languages: Record<string, { name: Asked; home: Asked; others: string[] }> = {
  English: {
    name: {
      questions: ['Who am I?', "What's my name?", 'Hello! Do you know who I am?'],
      notes: [...english.name, 'Call me Ada.', 'My full name is Ada Byron, and I like to swim.'],
    },
    home: {
      questions: ['Where is my home?', 'Where do I live?', 'What is my address?'],
      notes: [...english.home, 'Address: 12 Rua Augusta, Lisbon', 'We moved to Lisbon in March.'],
    },
    others: [
      'The name of the new café is Blau.',
      'My sister lives in Madrid.',
      'The train was late again this morning.',
      'My neighbour plays the trumpet.',
      'I read a book about whales.',
      'The garden needs water.',
      'Dinner at eight with the Millers.',
      'The printer is out of toner.',
      'I bought new shoes for running.',
      'We need a new router in the cellar.',
      'The bike shop closes at six.',
      'My boss wants the report on Friday.',
      'The home page of the project loads slowly.',
      'Who won the match last night?',
      'I prefer tea to coffee.',
      'The kitchen tap drips.',
      'We paint the fence in green.',
      'The bakery sells rye bread.',
      'I watched a film about bees.',
      'The lamp in the hall is broken.',
    ],
  },
  German: {
    name: {
      questions: ['Wer bin ich?', 'Wie heiße ich?', 'Weißt du, wie ich heiße?'],
      notes: ['Name: Ada', 'Ich heiße Ada', 'Mein Name ist Ada.'],
    },
    home: {
      questions: ['Wo ist mein Zuhause?', 'Wo wohne ich?', 'Wie ist meine Adresse?'],
      notes: ['Zuhause: Lissabon', 'Adresse: Rua Augusta 12, Lissabon', 'Ich wohne in Lissabon.'],
    },
    others: [
      'Das neue Café heißt Blau.',
      'Meine Schwester lebt in Madrid.',
      'Der Zug war heute wieder zu spät.',
      'Mein Nachbar spielt Trompete.',
      'Ich lese ein Buch über Wale.',
      'Der Garten braucht Wasser.',
      'Essen um acht mit den Müllers.',
      'Der Drucker hat keinen Toner.',
      'Ich habe neue Laufschuhe gekauft.',
      'Wir brauchen einen neuen Router im Keller.',
      'Der Fahrradladen schließt um sechs.',
      'Mein Chef will den Bericht am Freitag.',
      'Die Startseite lädt langsam.',
      'Wer hat das Spiel gewonnen?',
      'Ich mag Tee lieber als Kaffee.',
      'Der Wasserhahn tropft.',
      'Wir streichen den Zaun grün.',
      'Die Bäckerei hat Roggenbrot.',
      'Ich sah einen Film über Bienen.',
      'Die Lampe im Flur ist kaputt.',
    ],
  },
  Spanish: {
    name: {
      questions: ['¿Quién soy?', '¿Cómo me llamo?', '¿Cuál es mi nombre?'],
      notes: ['Nombre: Ada', 'Me llamo Ada', 'Mi nombre es Ada.'],
    },
    home: {
      questions: ['¿Dónde vivo?', '¿Dónde está mi casa?', '¿Cuál es mi dirección?'],
      notes: ['Casa: Lisboa', 'Dirección: Rua Augusta 12, Lisboa', 'Vivo en Lisboa.'],
    },
    others: [
      'El café nuevo se llama Blau.',
      'Mi hermana vive en Madrid.',
      'El tren llegó tarde otra vez.',
      'Mi vecino toca la trompeta.',
      'Leo un libro sobre ballenas.',
      'El jardín necesita agua.',
      'Cena a las ocho con los Pérez.',
      'La impresora no tiene tóner.',
      'Compré zapatillas nuevas.',
      'Necesitamos un router nuevo en el sótano.',
      'La tienda de bicis cierra a las seis.',
      'Mi jefe quiere el informe el viernes.',
      'La página de inicio carga despacio.',
      '¿Quién ganó el partido?',
      'Prefiero el té al café.',
      'El grifo gotea.',
      'Pintamos la valla de verde.',
      'La panadería vende pan de centeno.',
      'Vi una película sobre abejas.',
      'La lámpara del pasillo está rota.',
    ],
  },
  French: {
    name: {
      questions: ['Qui suis-je ?', 'Comment je m’appelle ?', 'C’est quoi mon prénom ?'],
      notes: ['Nom : Ada', "Je m'appelle Ada", 'Mon prénom est Ada.'],
    },
    home: {
      questions: ['Où est ma maison ?', 'Où est-ce que j’habite ?', 'Quelle est mon adresse ?'],
      notes: ['Domicile : Lisbonne', 'Adresse : 12 Rua Augusta, Lisbonne', 'J’habite à Lisbonne.'],
    },
    others: [
      'Le nouveau café s’appelle Blau.',
      'Ma sœur habite à Madrid.',
      'Le train était encore en retard.',
      'Mon voisin joue de la trompette.',
      'Je lis un livre sur les baleines.',
      'Le jardin a besoin d’eau.',
      'Dîner à huit heures avec les Martin.',
      'L’imprimante n’a plus de toner.',
      'J’ai acheté des chaussures de course.',
      'Il faut un nouveau routeur à la cave.',
      'Le magasin de vélos ferme à six heures.',
      'Mon chef veut le rapport vendredi.',
      'La page d’accueil est lente.',
      'Qui a gagné le match ?',
      'Je préfère le thé au café.',
      'Le robinet fuit.',
      'Nous peignons la clôture en vert.',
      'La boulangerie vend du pain de seigle.',
      'J’ai vu un film sur les abeilles.',
      'La lampe du couloir est cassée.',
    ],
  },
  Russian: {
    name: {
      questions: ['Кто я?', 'Как меня зовут?', 'Какое у меня имя?'],
      notes: ['Имя: Ада', 'Меня зовут Ада', 'Моё имя Ада.'],
    },
    home: {
      questions: ['Где я живу?', 'Где мой дом?', 'Какой у меня адрес?'],
      notes: ['Дом: Лиссабон', 'Адрес: Руа Аугуста 12, Лиссабон', 'Я живу в Лиссабоне.'],
    },
    others: [
      'Новое кафе называется Блау.',
      'Моя сестра живёт в Мадриде.',
      'Поезд снова опоздал.',
      'Мой сосед играет на трубе.',
      'Я читаю книгу о китах.',
      'Саду нужна вода.',
      'Ужин в восемь с Ивановыми.',
      'В принтере нет тонера.',
      'Я купила новые кроссовки.',
      'Нам нужен новый роутер в подвал.',
      'Магазин велосипедов закрывается в шесть.',
      'Мой начальник хочет отчёт в пятницу.',
      'Главная страница грузится медленно.',
      'Кто выиграл матч?',
      'Я предпочитаю чай.',
      'Кран капает.',
      'Мы красим забор в зелёный.',
      'В пекарне есть ржаной хлеб.',
      'Я смотрела фильм о пчёлах.',
      'Лампа в коридоре сломана.',
    ],
  },
}

const { backend, base, user, last } = await startCompletions(t)

/** A vault with a note that is older than all others. */
async function vaultWith(note: string[], others: readonly string[]) {
  const one = await user()
  await insertMemories(
    backend,
    one.key,
    [...note, ...others].map(text => ({ text })),
  )
  const api = createTestClient(base, one.key)
  return {
    /** The block of a question; null without one. */
    prepare: async (question: string): Promise<string | null> => {
      const messages = [{ role: 'user', content: question }]
      return (await api.post('/v1/memory/prepare', { messages })).body.context
    },
    search: async (question: string): Promise<{ content: string; relevance: number }[]> =>
      (await api.post('/v1/memory/search', { query: question, limit: 5 })).body.memories,
    /** The messages that the provider gets for it. */
    call: async (question: string): Promise<string> => {
      await one.post(asks(question), { 'x-memory-store': 'false' })
      return last().body.toString()
    },
  }
}

const told = (note: string): RegExp => new RegExp(`\\] ${note}\\n`)

for (const [language, { name, home, others }] of Object.entries(languages)) {
  for (const [kind, { questions, notes }] of Object.entries({ name, home })) {
    t.test(`200: a note of a ${kind} is found in ${language}`, async t => {
      for (const note of new Set([...notes, ...english[kind as keyof typeof english]])) {
        const { prepare, search, call } = await vaultWith([note], others)
        for (const question of questions) {
          t.match(await prepare(question), told(note), `${note} | ${question}`)
          t.match((await search(question))[0], { content: note }, `${note} | ${question}`)
        }
        t.ok((await call(questions[0]!)).includes(note), `${note} | proxied: ${questions[0]}`)
      }
    })
  }
}

t.test('200: a question in English finds the sentences of other languages', async t => {
  for (const [question, notes] of [
    ['Who am I?', ['Ich heiße Ada', 'Me llamo Ada', "Je m'appelle Ada", 'Меня зовут Ада']],
    ['Where is my home?', ['Ich wohne in Lissabon.', 'Vivo en Lisboa.', 'J’habite à Lisbonne.']],
  ] as const) {
    for (const note of notes) {
      const { prepare, search } = await vaultWith([note], languages['English']!.others)
      t.match(await prepare(question), told(note), note)
      t.match((await search(question))[0], { content: note }, note)
    }
  }
})

t.test('200: a message of a fresh vault answers who one is', async t => {
  const { key } = await user()
  const { post } = createTestClient(base, key)
  await post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content: 'Name: Ada' }] })
  const { body } = await post('/v1/memory/prepare', {
    messages: [{ role: 'user', content: 'Who am I?' }],
  })
  t.match(body, { context: told('Name: Ada'), memories_found: 1, abstained: null })
})

t.test('200: who one is needs no line that tells of nobody', async t => {
  const { others } = languages['English']!
  const { prepare } = await vaultWith(['Name: Ada', 'Job: nurse'], others)
  const context = await prepare('Who am I?')
  for (const line of ['Name: Ada', 'Job: nurse']) t.match(context, told(line))
  t.notMatch(context, /garden|printer|bakery/)
})

t.test('200: what is asked of somebody else stays null', async t => {
  const { prepare, call } = await vaultWith([], languages['English']!.others)
  const questions = [
    'Who are you?',
    'Who am I speaking to?',
    "Who is Ada's boss?",
    'What is your name?',
    "What's my name?",
    'Do you know who I am?',
    'Where do you live?',
    'Wer bist du?',
    '¿Quién eres?',
    'Qui es-tu ?',
    'Как тебя зовут?',
  ]
  for (const question of questions) t.equal(await prepare(question), null, question)
  const sent = JSON.parse(await call('Who are you?')) as { messages: unknown[] }
  t.same(sent.messages, [{ role: 'user', content: 'Who are you?' }])
})

t.test('200: a name is no answer to a question about somebody else', async t => {
  const { prepare } = await vaultWith(['Name: Ada', 'Home: Lisbon'], languages['English']!.others)
  for (const question of ['Who are you?', 'Who am I speaking to?', "What is my wife's name?"])
    t.equal(await prepare(question), null, question)
})
