/**
 * How requests begin that ask a model for what it knows anyway, or for code, in the languages of most
 * teams; words in lower case.
 */
const requestBeginnings =
  `how do i|how do you|how can i|how to|how does|what is a|what is an|what is the difference|what are the
|what does|explain|describe|define|translate|why does|why is|write a|write an|write some|write me|fix this|debug this
|refactor this|review this code|convert this|generate a|give me an example|give me a|implement a|implement an
|comment faire|qu est ce qu
|explique|traduis|écris un|cómo puedo|qué es|explica|traduce|escribe un|como faço|o que é|come si|cos è|traduci`
    .replaceAll('\n', '')
    .split('|')
    .map(words => `${words} `)

/** Names of languages and tools; other names may be of the team's own things. */
const technicalNames = new Set(
  `python javascript typescript java kotlin swift rust ruby php sql html css json yaml xml csv bash linux unix
windows macos git github docker kubernetes react vue angular node npm postgres postgresql mysql mongodb redis
excel regex api rest http https tcp udp url utf c cpp go i english german french spanish`.split(
    /\s+/,
  ),
)

/** Words by which a request may be about the team or someone in it. */
const ownWords =
  /(?<![\p{L}\p{N}])(?:we|we're|we've|our|ours|us|my|mine|me|i'm|i've|let's|team|company|client|customer|wir|unser|unsere|unserem|unseren|mein|meine|nous|notre|nos|mon|ma|mes|nuestro|nuestra|mi|mis|nosso|nossa|meu|minha|nostro|nostra)(?![\p{L}\p{N}])/iu

/** Longer requests may say something on the way. */
const lengthMax = 240

/**
 * Whether a message only asks for what any model knows, or about a piece of code, so that no model need
 * look for facts in it: one sentence that begins as such requests do, without a word about the team, a name
 * or a number. What it is not sure about is looked at.
 */
export function isGeneralQuestion(message: string): boolean {
  const text = withoutCode(message)
  if (text.length > lengthMax || text === '') return false
  const plain = (text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).join(' ')
  if (!requestBeginnings.some(beginning => `${plain} `.startsWith(beginning))) return false
  const isOneSentence = !/[.!?。？！]\s|\n/u.test(text)
  return isOneSentence && !ownWords.test(text) && !/\p{N}/u.test(text) && !hasName(text)
}

/** The only text beside fences of code, trimmed; empty where there is none, or more. */
function withoutCode(message: string): string {
  const parts = message.split('```').map(part => part.trim())
  const outside = parts.filter((part, index) => index % 2 === 0 && part !== '')
  if (outside.length !== 1) return ''
  const [text] = outside
  return text!.endsWith(':') ? text!.slice(0, -1) : text!
}

/** A word in capitals after the first that is no language or tool. */
const hasName = (text: string): boolean =>
  (text.match(/(?<=\s[^\p{L}\p{N}\s]?)\p{Lu}[\p{L}\p{N}]*/gu) ?? []).some(
    word => !technicalNames.has(word.toLowerCase()),
  )
