import { foldText } from '#shared/search/words/writing-systems.ts'

/**
 * Questions that similarity alone does not answer.
 * `self`: what is known about the person; `everything`: all about a named thing; `count`: how often, over
 * conversations; `order`: what came first; `preference`: advice, which depends on what the person likes.
 */
export type QuestionKind = 'self' | 'everything' | 'count' | 'order' | 'preference'

/** Forms of each kind in folded text; the first that matches counts. */
const forms: readonly (readonly [QuestionKind, RegExp])[] = [
  [
    'self',
    /\byou(?:'ve| have)? (?:know|remember|learn(?:ed|t)|noted|stored)(?: so far)? about (?:me|myself)\b|\btell me about myself\b|\btold you about (?:me|myself)\b|^who am i\P{L}{0,4}$|\b(?:my profile|facts about me)\b|\bdescribe me\b/u,
  ],
  [
    'self',
    /\b(?:weisst|kennst|gemerkt).{0,20} (?:uber mich|von mir)\b|\b(?:sabes|conoces|recuerdas).{0,20} (?:sobre|de) mi\W{0,4}$|\b(?:sais|savez|retenu).{0,20} (?:sur|de) moi\b|\b(?:sai|ricordi).{0,20} (?:su )?di me\b|\b(?:sabes?|lembras?).{0,20} (?:sobre|de) mim\b|\bweet .{0,20}over mij\b|\bvet du om mig\b|\bwiesz o mnie\b|^\P{L}{0,3}(?:wer bin ich|quien soy(?: yo)?|qui suis-je|chi sono(?: io)?|quem sou eu|wie ben ik|кто я)\P{L}{0,4}$/u,
  ],
  [
    'self',
    /(?:знаешь|знаете|помнишь|расскажи) обо мне|(?:知道|了解|记得|記得)(?:关于|關於)?我(?:什么|什麼|哪些|多少)|我是谁|我是誰|私について(?:何|なに|知|覚)|(?:나|저)에 대해.{0,12}(?:알|기억)|تعرفه? عني|मेरे बारे में.{0,12}(?:जानते|पता|याद)/u,
  ],
  [
    'everything',
    /\b(?:everything|all|anything) (?:that )?(?:you know |i (?:have )?(?:said|told you|mentioned) |we (?:have )?(?:said|discussed) )?(?:about|on|regarding)\b|\bwhat (?:do you know|did i (?:say|tell you)|have i (?:said|told you)) about\b|\bsummar(?:ise|ize|y)\b.{0,40}\b(?:about|of|on)\b/u,
  ],
  [
    'everything',
    /\b(?:alles (?:uber|zu)|was weisst du (?:uber|von)|todo sobre|que sabes (?:de|sobre)|tout sur|que sais-tu (?:de|sur)|tutto su|cosa sai (?:di|su)|tudo sobre|o que sabes? (?:de|sobre))\b|все о |что ты знаешь о|你知道关于.{1,20}的什么|关于.{1,20}的(?:一切|全部)|について(?:全部|すべて)|كل شيء عن|के बारे में सब/u,
  ],
  [
    'count',
    /\bhow (?:many times|often)\b|\bhow many (?:different )?\p{L}{1,20} (?:have|did|do|are|were|had) (?:i|we|you|there)\b|\b(?:wie oft|cuantas veces|combien de fois|quante volte|quantas vezes|hoe vaak)\b|сколько раз|几次|幾次|何回|몇 번|كم مره|कितनी बार/u,
  ],
  [
    'order',
    /\b(?:in (?:which|what) order|(?:which|what|who) (?:\p{L}{1,20} ){0,3}(?:came |was |happened )?(?:first|last|earlier|later|before)|timeline|chronolog\p{L}{0,12}|in der reihenfolge|in welcher reihenfolge|en que orden|dans quel ordre|in che ordine|em que ordem)\b|в каком порядке|什么顺序|どの順|順番/u,
  ],
  [
    'preference',
    /\b(?:recommend|suggest|any (?:ideas|tips|suggestions|recommendations))\b|\bwhat should (?:i|we) (?:eat|cook|drink|watch|read|wear|buy|order|play|listen|visit|get|give|do)\b|\b(?:my|your) favou?rites?\b|\bwhat (?:do|would) i (?:like|prefer|enjoy|love|hate)\b/u,
  ],
  [
    'preference',
    /\b(?:empfiehl\p{L}{0,12}|empfehl\p{L}{0,12}|schlag\p{L}{0,12} .{0,30}vor|lieblings\p{L}{0,12}|recomienda\p{L}{0,12}|que me recomiendas|favorit[oa]s?|recommand\p{L}{0,12}|consigli\p{L}{0,12}|preferit[oa]|recomend\p{L}{0,12}|preferid[oa])\b|посоветуй|порекомендуй|любим\p{L}{0,12}|推荐|推薦|おすすめ|お勧め|추천|انصح|اقترح|सुझाव/u,
  ],
]

/** Characters of a sentence that are read. */
const lengthMax = 300

/** The kind of a sentence; undefined for those that are answered by what is most similar. */
export function questionKind(sentence: string): QuestionKind | undefined {
  const text = foldText(sentence.slice(0, lengthMax))
  return forms.find(([, form]) => form.test(text))?.[0]
}

/** Statements of likes, habits and standing instructions, in folded text. */
const preferences: readonly RegExp[] = [
  /\bi(?:'m| am)? (?:really |do |usually |always |never |only |much )*(?:prefer|like|love|enjoy|hate|dislike|adore|avoid|vegan|vegetarian|allergic|not a fan|a fan|into|don't (?:like|eat|drink)|do not (?:like|eat|drink)|can't (?:stand|eat)|cannot (?:stand|eat))\b|\b(?:from now on|in (?:the )?future,? (?:please|always|never)|favou?rite|my preference|rather than|call me)\b|^(?:please )?(?:always|never)\b/u,
  /\b(?:ich (?:mag|liebe|hasse|bevorzuge|esse kein\p{L}{0,12}|trinke kein\p{L}{0,12})|am liebsten|lieber|lieblings\p{L}{0,12}|ab (?:jetzt|sofort)|prefiero|me gusta\p{L}{0,12}|me encanta\p{L}{0,12}|odio|a partir de ahora|je prefere|j'aime|j'adore|je deteste|desormais|preferisco|mi piac\p{L}{0,12}|d'ora in poi|prefiro|gosto de|adoro|de agora em diante)\b/u,
  /предпочитаю|люблю|ненавижу|нравится|отныне|喜欢|喜歡|不喜|讨厌|从现在起|今后|好き|嫌い|これからは|좋아|싫어|앞으로|افضل|احب|اكره|من الان|पसंद|अब से/u,
]

/** Whether a text states what a person likes or wants from now on. */
export function statesPreference(text: string): boolean {
  const folded = foldText(text.slice(0, lengthMax))
  return preferences.some(form => form.test(folded))
}
