import type {
  DatasetSplit,
  EvaluationConversation,
  EvaluationSession,
} from '#scripts/lab/bench/recall/conversation.ts'

/** The statement and the question about a fact, and the words that long replies about it use. */
type Topic = { fact: string; questions: readonly string[]; request: string; words: string }

/**
 * Conversations with an assistant whose replies have 1,500 to 3,000 characters and name everything once:
 * the person's own line is what answers. Both halves have subjects and sentences of their own.
 */
export function createLongReplies(split: DatasetSplit): EvaluationConversation {
  const { topics, sentences, followUps } = halves[split]
  const start = Date.UTC(2025, split === 'tuned' ? 2 : 8, 3, 9)
  const sessions: EvaluationSession[] = []
  const questions: EvaluationConversation['questions'] = []
  for (const [i, { fact, questions: asked, request, words }] of topics.entries()) {
    const tag = `fact${i}`
    const names = words.split(' ')
    const told = { tag, speaker: 'user', role: 'user' as const, text: fact }
    const exchanges = [
      [told, reply(sentences, names, i)],
      [{ speaker: 'user', role: 'user' as const, text: request }, reply(sentences, names, i + 5)],
      [
        { speaker: 'user', role: 'user' as const, text: followUps[i % followUps.length]! },
        reply(sentences, [...names, ...topics[(i + 3) % topics.length]!.words.split(' ')], i + 9),
      ],
    ]
    for (const [day, turns] of exchanges.entries())
      sessions.push({ at: start + (3 * i + 17 * day) * 86_400_000, turns })
    for (const text of asked) questions.push({ kind: 'long', text, evidence: [tag] })
  }
  sessions.sort((one, other) => one.at - other.at)
  return { sessions, questions }
}

const lengthMin = 1_500

/** A reply of 15 to 30 sentences that uses every word once or twice. */
function reply(sentences: readonly string[], words: readonly string[], turn: number) {
  const lines: string[] = []
  const lengthMax = lengthMin + ((turn * 397) % 1_500)
  for (let i = 0; lines.join(' ').length < lengthMax; i++) {
    const pattern = sentences[(turn + i) % sentences.length]!
    const word = (offset: number): string => words[(turn + 2 * i + offset) % words.length]!
    lines.push(pattern.replace('{}', word(0)).replace('{}', word(1)))
  }
  return { speaker: 'assistant', role: 'assistant' as const, text: lines.join(' ') }
}

type Half = {
  topics: readonly Topic[]
  sentences: readonly string[]
  followUps: readonly string[]
}

const halves: Record<DatasetSplit, Half> = {
  tuned: {
    topics: [
      {
        fact: 'My cat Ada only eats salmon.',
        questions: ['What does my cat eat?', 'What is the name of my cat?'],
        request: 'How do I choose good food for a cat?',
        words: 'cat food eating name bowl fish kitten vet salmon diet portion',
      },
      {
        fact: 'I bake with rye flour from the mill in Odda.',
        questions: ['Which flour do I bake with?', 'Where is my flour from?'],
        request: 'Which flour makes a good loaf?',
        words: 'flour bread baking mill loaf oven yeast rye dough crust',
      },
      {
        fact: 'My bike is a red Surly with a dynamo lamp.',
        questions: ['What colour is my bike?', 'Which brand is my bicycle?'],
        request: 'How should I maintain a bike?',
        words: 'bike bicycle chain lamp brand colour brake wheel pump tyre',
      },
      {
        fact: 'The dentist is on Friday at ten past eight.',
        questions: ['When is my dentist appointment?', 'On which day do I see the dentist?'],
        request: 'How do I prepare for an appointment with the dentist?',
        words: 'dentist appointment day tooth pain insurance clinic morning schedule',
      },
      {
        fact: 'We rented a cabin near Voss for the holiday.',
        questions: ['Where is the cabin we rented?', 'Where do we spend the holiday?'],
        request: 'What should one pack for a holiday in a cabin?',
        words: 'cabin holiday rent lake packing stove forest weekend family car',
      },
      {
        fact: 'My manager is called Ingrid.',
        questions: ['Who is my manager?', 'What is my boss called?'],
        request: 'How do I give feedback to a manager?',
        words: 'manager boss feedback meeting office team name conversation career',
      },
      {
        fact: 'I run five kilometres every Tuesday.',
        questions: ['How far do I run?', 'On which day do I go running?'],
        request: 'How do I train for a longer run?',
        words: 'run running kilometres training shoes week day pulse distance',
      },
      {
        fact: 'I am learning the viola with Mr. Brandt.',
        questions: ['Which instrument do I learn?', 'Who is my music teacher?'],
        request: 'How often should one practise an instrument?',
        words: 'instrument teacher music practice lesson scale viola bow learning',
      },
    ],
    sentences: [
      'When people think about {}, they often forget that {} matters just as much in the long term.',
      'A simple rule is to look at {} first, because everything else follows from it, and to write down what you notice about {}.',
      'Most guides recommend that you compare at least three kinds of {} before you decide, and that you keep an eye on {}.',
      'If your {} is not what you expected, do not worry: small changes to {} usually help within a few days.',
      'It is worth asking someone with experience about {}, since mistakes with {} are common at the beginning.',
      'Finally, set yourself a reminder, check {} once a month, and treat {} as part of the routine.',
    ],
    followUps: [
      'Could you go into more detail?',
      'Give me a longer overview of all of this.',
      'What else should I consider?',
    ],
  },
  heldout: {
    topics: [
      {
        fact: 'The parrot we keep is Kiko, he likes walnuts.',
        questions: ['What does my parrot like?', 'How is our bird called?'],
        request: 'What do I need for keeping a bird at home?',
        words: 'bird parrot cage nuts feathers perch call liking home seeds',
      },
      {
        fact: 'I water the orchids on Sundays only.',
        questions: ['When do I water the orchids?', 'Which flowers do I water on Sundays?'],
        request: 'How are houseplants kept alive in winter?',
        words: 'orchids flowers water plants pot soil light window leaves winter',
      },
      {
        fact: 'My laptop is a ThinkPad that I got in 2022.',
        questions: ['Which laptop do I have?', 'When did I get my computer?'],
        request: 'How do I speed up an old laptop?',
        words: 'laptop computer memory battery screen disk update keyboard year',
      },
      {
        fact: 'My flight to Bergen leaves from gate 14.',
        questions: ['Which gate does my flight leave from?', 'Where do I fly to?'],
        request: 'What should I know before a flight?',
        words: 'flight gate luggage airport ticket passport leaving seat delay flying',
      },
      {
        fact: 'My grandmother lives in a yellow house in Tavira.',
        questions: ['Where does my grandmother live?', 'What colour is the house of my granny?'],
        request: 'How can I help a grandmother to stay at home?',
        words: 'grandmother house home care living stairs neighbour visit colour',
      },
      {
        fact: 'I owe Tomas forty euros for the concert.',
        questions: ['Whom do I owe money?', 'How much do I owe for the concert?'],
        request: 'How do I keep track of money that I owe?',
        words: 'money owe debt budget concert friend transfer bank euros',
      },
      {
        fact: 'I take vitamin D after breakfast.',
        questions: ['Which vitamin do I take?', 'When do I take my vitamin?'],
        request: 'Which vitamins are worth taking in winter?',
        words: 'vitamin taking breakfast sun dose doctor bones winter health',
      },
      {
        fact: 'Our choir meets in the old fire station.',
        questions: ['Where does my choir meet?', 'Who meets in the fire station?'],
        request: 'How does one warm up before choir practice?',
        words: 'choir singing voice meeting station breath practice concert song',
      },
    ],
    sentences: [
      'There are several ways to approach {}, and the best one depends on how much time you can spend on {}.',
      'Start with the basics of {}; once these are clear, the questions about {} nearly answer themselves.',
      'Experts disagree about {}, yet nearly all of them say that {} deserves more attention than it gets.',
      'You could also keep a short list with everything about {}, so that you see at a glance what {} needs next.',
      'Be careful with cheap offers around {}: they rarely last, and repairing {} costs more in the end.',
      'Once you feel comfortable with {}, try a variation and observe how {} reacts before you change anything else.',
    ],
    followUps: [
      'Please explain that in full.',
      'Is there anything more to say?',
      'Write me a complete guide.',
    ],
  },
}
