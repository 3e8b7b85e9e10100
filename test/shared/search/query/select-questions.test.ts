import t from 'tap'
import { selectQuestions } from '#shared/search/query/select-questions.ts'
import { isSmallTalk } from '#shared/search/query/sentence-kinds.ts'
import { splitSentences } from '#shared/search/query/split-sentences.ts'

const asked = (message: string): string[] =>
  selectQuestions(message)
    .filter(({ kind }) => kind === 'asking' || kind === 'whole')
    .map(({ text }) => text)

t.test('sentences end as their script ends them', async t => {
  for (const [text, sentences] of [
    [
      'Dr. Silva pays 3.50 euros. Version 1.2 is out! Ok?',
      ['Dr. Silva pays 3.50 euros.', 'Version 1.2 is out!', 'Ok?'],
    ],
    ['Am 3. Mai war ich da. Wo war das?', ['Am 3. Mai war ich da.', 'Wo war das?']],
    ['我养了一只猫。它叫什么名字？', ['我养了一只猫。', '它叫什么名字？']],
    ['猫を飼っています。名前は何ですか？', ['猫を飼っています。', '名前は何ですか？']],
    ['مرحبا يا صديقي. أين أسكن؟ شكرا', ['مرحبا يا صديقي.', 'أين أسكن؟', 'شكرا']],
    ['मैं घर पर हूँ। मेरी बिल्ली कहाँ है?', ['मैं घर पर हूँ।', 'मेरी बिल्ली कहाँ है?']],
    ['Estoy en casa ¿Dónde está mi gato?', ['Estoy en casa', '¿Dónde está mi gato?']],
    ['one line\n\nanother line', ['one line', 'another line']],
    ['...', []],
  ] as const)
    t.same(splitSentences(text), sentences, text)
  const long = `${'word '.repeat(400)}.`
  t.equal(splitSentences(long).join(' '), long.replace(' .', ' .'), 'nothing is lost')
  t.ok(splitSentences(long).every(({ length }) => length <= 320))
})

t.test('what asks is found behind, before and within what does not', async t => {
  const question = 'Which nuts make me ill?'
  for (const message of [
    question,
    `Hello there! ${question} Thank you so much.`,
    `${question} Please keep your answer short and use no bullet points.`,
    `You are a helpful assistant. Answer in two sentences.\n\nUser question: ${question}`,
    `The rain has stopped. ${question} The cat is asleep.`,
    JSON.stringify({ role: 'user', input: { question }, format: 'markdown list' }),
    `Here is my request:\n\`\`\`json\n${JSON.stringify({ prompt: question })}\n\`\`\``,
  ])
    t.ok(asked(message).includes(question), message)
  for (const [message, sentence] of [
    [
      'Guten Morgen! Wie heißt mein Hund? Bitte antworte kurz in einem Satz.',
      'Wie heißt mein Hund?',
    ],
    ['Bonjour. Comment s’appelle mon chien ? Merci beaucoup.', 'Comment s’appelle mon chien ?'],
    ['你好！我的狗叫什么？请用一句简短的话回答。', '我的狗叫什么？'],
    ['नमस्ते। मेरे कुत्ते का नाम क्या है? धन्यवाद।', 'मेरे कुत्ते का नाम क्या है?'],
  ] as const)
    t.same(asked(message), [sentence], message)
})

t.test('greetings, thanks and forms of answers ask nothing', async t => {
  for (const message of [
    'hello!',
    'Thanks, that is great!',
    'ok',
    'Vielen Dank, bis bald!',
    'Muchas gracias.',
    'спасибо большое!',
    'شكرا جزيلا',
    'धन्यवाद!',
    '谢谢！',
    'ありがとうございます。',
    '감사합니다!',
    'Please answer briefly, in markdown.',
    'Antworte bitte in höchstens zwei Sätzen.',
    'You are a careful expert for travel.',
  ])
    t.same(selectQuestions(message), [], message)
  for (const sentence of [
    'I am allergic to nuts.',
    'I use a short rope with my dog.',
    'What is my cat called?',
    'Where did I write the short list of names?',
    '我的猫叫什么？',
    'Ich wohne in Porto.',
  ])
    t.notOk(isSmallTalk(sentence), sentence)
})

t.test(
  'the last sentences and names of earlier ones are searched for; work is bounded',
  async t => {
    const message = [
      'Yesterday I met Priya at the market.',
      ...Array.from({ length: 9 }, (_, i) => `Sentence number ${i} is about the garden.`),
      'She was hiding under the sofa.',
      'How can I calm her down?',
    ].join(' ')
    const questions = selectQuestions(message)
    const ofKind = (kind: string) =>
      questions.filter(one => one.kind === kind).map(({ text }) => text)
    t.same(ofKind('asking'), ['How can I calm her down?'])
    t.ok(ofKind('statement').includes('She was hiding under the sofa.'))
    t.same(ofKind('name'), ['Priya'])
    const many = selectQuestions('What is Ada doing in Rome with Kim? '.repeat(400))
    t.ok(many.length <= 12, `${many.length} parts`)
  },
)
