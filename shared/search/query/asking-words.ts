import { foldText } from '#shared/search/words/writing-systems.ts'

/**
 * Words that begin a question or a request for knowledge, by language; accents and case do not matter.
 * Words of two or three parts are joined by a space.
 */
const beginnings = [
  // English
  'who whom whose what which when where why how is are was were do does did can could will would should shall may am has have had whats wheres whos hows tell remind show list name give explain describe summarize recall find',
  // German
  'wer wen wem wessen was welche welcher welches welchen wann wo woher wohin warum wieso weshalb wie ist sind war waren hat habe haben kann konnte soll sollte darf weisst erinnere sag nenne zeig liste',
  // Spanish
  'quien quienes que cual cuales cuando donde adonde porque como cuanto cuanta cuantos cuantas dime recuerdame',
  // French
  'qui quand ou pourquoi comment combien quel quelle quels quelles quoi est-ce dis rappelle',
  // Italian
  'chi cosa quando dove perche come quanto quanta quanti quante qual quale quali dimmi ricordami',
  // Portuguese
  'quem qual quais onde quando quanto quantos quantas por-que lembra diga',
  // Dutch, Swedish, Polish, Turkish
  'wie wat waar wanneer waarom hoe welk welke vem vad var nar varfor hur vilken kto co gdzie kiedy dlaczego jak ktory kim ne nerede nasil hangi kac neden',
  // Russian, Ukrainian
  'кто что где когда почему зачем как какой какая какое какие сколько куда откуда чей хто що де коли чому скільки напомни скажи',
  // Arabic
  'من ما ماذا متى اين كيف هل لماذا كم اي',
  // Hindi
  'क्या कौन कब कहां कहाँ कैसे क्यों कितने कितना कितनी किस',
]

const beginningWords: ReadonlySet<string> = new Set(
  beginnings.flatMap(words => words.split(' ').map(word => foldText(word))),
)

/** Words and endings of questions in scripts without spaces, in Korean and in Hindi. */
const askingParts =
  /什么|什麼|谁|誰|哪|几[个點点岁]|多少|怎么|怎麼|为什么|為什麼|何时|吗|嗎|呢$|何|どこ|いつ|なぜ|どう|どの|どれ|いくら|いくつ|ですか|ますか|でしたか|ましたか|무엇|뭐|누구|어디|언제|왜|어떻게|몇|얼마|[니까나]\s*$|क्या|कौन|कहाँ|कहां|कैसे|क्यों|कितन|ไหม|อะไร|ใคร|ที่ไหน|เมื่อไหร่|ทำไม/u

/** Whether a sentence asks for something. */
export function isAsking(sentence: string): boolean {
  const ending = sentence.slice(-6)
  if (/[?？؟][\p{P}\s]{0,5}$/u.test(ending) || /\p{sc=Grek}.*;\s*$/u.test(ending)) return true
  const text = foldText(sentence)
  const [first = ''] = text.replace(/^[\p{P}\p{S}\s]+/u, '').split(/[\s,.:;!?'’]/u, 1)
  return beginningWords.has(first) || askingParts.test(sentence)
}
