import t from 'tap'
import { questionKind, statesPreference } from '#shared/search/query/question-kinds.ts'

t.test('the kind of a question, in several languages', t => {
  for (const [kind, questions] of [
    [
      'self',
      [
        'What do you know about me?',
        'Summarize what you know about me.',
        'Who am I?',
        '¿Quién soy?',
        'Chi sono?',
        'Wie ben ik?',
        'Кто я?',
        'Was weißt du über mich?',
        'Que sais-tu de moi ?',
        '¿Qué sabes de mí?',
        'Cosa sai di me?',
        'O que sabes sobre mim?',
        'Что ты знаешь обо мне?',
        '你知道我什么？',
        '私について何を知っていますか？',
        'ماذا تعرف عني؟',
      ],
    ],
    [
      'everything',
      [
        'Tell me everything about my sister.',
        'What do you know about the garden project?',
        'Was weißt du über meinen Garten?',
        '¿Qué sabes de mi hermana?',
      ],
    ],
    [
      'count',
      [
        'How many times did I go swimming?',
        'How often have I been to Porto?',
        'How many books have I read this year?',
        'Wie oft war ich beim Zahnarzt?',
        'Сколько раз я был в Казани?',
      ],
    ],
    ['order', ['In which order did I visit the cities?', 'Which trip was first, Rome or Oslo?']],
    [
      'preference',
      [
        'Can you recommend a restaurant for tonight?',
        'What should I cook on Friday?',
        'Empfiehl mir bitte ein Buch.',
        '推荐一家餐厅。',
      ],
    ],
  ] as const)
    for (const question of questions) t.equal(questionKind(question), kind, question)
  for (const question of [
    'What is my cat called?',
    'When is the wedding of my cousin?',
    'Where does the login code live?',
    'Wo arbeitet meine Schwester?',
    'What did I tell you the day before yesterday?',
    'What do I owe my mechanic?',
    'What did Ruth say about me?',
    'Does my landlord know about me?',
    '你知道我的狗叫什么吗？',
    '¿Qué dijo Ana sobre mí?',
  ])
    t.equal(questionKind(question), undefined, question)
  t.end()
})

t.test('statements of likes and standing instructions', t => {
  for (const text of [
    'I prefer window seats.',
    'From now on, answer in French.',
    "I'm allergic to nuts.",
    'Always use tabs in my code.',
    'Ich mag keinen Koriander.',
    'Me gusta el té sin azúcar.',
    'Я люблю горы.',
    '我喜欢辣的菜。',
  ])
    t.ok(statesPreference(text), text)
  for (const text of ['The train was late.', 'My sister works in Leeds.', 'Das Auto ist rot.'])
    t.notOk(statesPreference(text), text)
  t.end()
})
