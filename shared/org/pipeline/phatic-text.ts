/**
 * Messages that state nothing, in the languages of most teams: greetings, thanks, acknowledgements, and
 * requests to go on. `yes` and `no` are left out: with the answer before them they may state something.
 */
const phaticPhrases = new Set(
  `ok|okay|k|kk|okey|alright|got it|understood|i see|thanks|thank you|thank you very much|thanks a lot|thx|ty|cheers
|great|nice|cool|perfect|awesome|wow|lol|haha|hi|hello|hey|hi there|good morning|good evening|bye|goodbye|see you
|continue|go on|please continue|next|try again|again|retry|danke|vielen dank|super|alles klar|hallo|guten morgen
|tschüss|weiter|merci|merci beaucoup|bonjour|salut|d accord|gracias|muchas gracias|hola|vale|buenos días|obrigado
|obrigada|olá|bom dia|grazie|ciao|buongiorno|dank je|bedankt|hoi|dzięki|спасибо|привет|хорошо|谢谢|好的|你好|继续
|ありがとう|ありがとうございます|了解|こんにちは|감사합니다|네 감사합니다|안녕하세요`
    .replaceAll('\n', '')
    .split('|'),
)

/** More cannot be such a phrase. */
const lengthMax = 40

/** Whether a message states nothing, so that no model need look for facts in it. */
export function isPhatic(text: string): boolean {
  if (text.length > lengthMax) return false
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  return words.length === 0 || phaticPhrases.has(words.join(' '))
}
