import { foldText } from '#shared/search/words/writing-systems.ts'

/** Verbs that begin a task: something is to be made, not remembered. By language, folded. */
const taskVerbs: ReadonlySet<string> = new Set(
  `write compose draft generate create invent translate rephrase rewrite summarise summarize proofread explain tell fix
rename add remove run refactor revert document bump implement debug test build install update deploy commit merge lint
format convert calculate compute solve code design brainstorm
schreib schreibe dichte verfasse ubersetze erzahl erzahle erklare erfinde generiere erstelle
ecris redige traduis raconte explique invente compose genere cree
escribe redacta traduce cuentame explica inventa compon genera crea
scrivi traduci raccontami spiega inventa componi genera crea
escreve escreva traduz traduza conta conte explica explique inventa compoe
напиши переведи расскажи сочини объясни придумай создай
اكتب ترجم احك اشرح اقترح انشئ लिखो लिखिए अनुवाद बताओ समझाओ`
    .split(/\s+/)
    .map(word => foldText(word)),
)
/** Verbs that begin a request; as a question such a sentence may ask for what is remembered. */
const requestVerbs: ReadonlySet<string> = new Set(
  `compare list suggest recommend give show find check make plan outline describe define name help analyse analyze
evaluate review discuss propose provide improve edit correct shorten extract count sort rank prepare
vergleiche liste nenne gib zeig zeige empfiehl finde suche mach mache plane beschreibe definiere hilf prufe verbessere
compare liste donne montre recommande trouve cherche fais decris definis aide verifie ameliore propose suggere
compara enumera dame muestra recomienda busca haz describe define ayuda revisa mejora sugiere propon
confronta elenca dammi mostra consiglia trova cerca fai descrivi definisci aiuta controlla migliora suggerisci
compara lista mostra recomenda procura faz descreve define ajuda verifica melhora sugere
vergelijk noem geef toon zoek maak beschrijf
сравни перечисли дай покажи посоветуй найди сделай опиши помоги проверь предложи подбери
قارن اذكر اعط اعطني اقترح ابحث صف ساعد तुलना सुझाव दिखाओ बताइए`
    .split(/\s+/)
    .map(word => foldText(word)),
)
const cjkTasks =
  /^(?:请|請|帮我|幫我)?(?:写一?|把.{1,20}翻译|翻译|翻譯|讲一?个|给.{1,12}解释|解释|想[一十几]|编一?)|(?:書いて|訳して|翻訳して|説明して|作って)(?:ください)?。?$|(?:써|번역해|설명해|만들어)\s?(?:줘|주세요)/u

/** First persons and what was said before: then a task is about what is remembered. */
const personal =
  /(?<![\p{L}\p{M}])(?:i|me|my|mine|we|our|us|ours|mein\p{L}*|mir|mich|ich|unser\p{L}*|uns|wir|je|moi|mon|ma|mes|notre|nos|mi|mis|yo|nuestr\p{L}*|mio|mia|miei|nostr\p{L}*|io|meu|minha|meus|eu|nosso|nossa|мо[йяеи]\p{L}*|меня|мне|наш\p{L}*|we|usual|again|last time|earlier|remember|wieder|erinner\p{L}*)(?![\p{L}\p{M}])|我|私|僕|俺|우리|나의|내 |मेर|हमार/u

/** Whether a text tells of, or asks about, a person's own things. */
export const isPersonal = (text: string): boolean => personal.test(foldText(text.slice(0, 400)))

/** Verbs without their person, and participles, that begin notes, by language; folded. */
const noteBeginnings: ReadonlySet<string> = new Set(
  `prefers likes loves enjoys hates dislikes wants needs works lives studies speaks plays owns drives uses has is was
allergic interested married born
mag liebt hasst bevorzugt mochte will braucht arbeitet wohnt lebt studiert spricht spielt besitzt fahrt nutzt benutzt
hat ist isst trinkt hort liest lernt interessiert verheiratet geboren allergisch
prefiere gusta encanta odia detesta quiere necesita trabaja vive estudia habla toca juega tiene posee conduce usa
utiliza bebe escucha lee aprende interesado interesada casado casada nacido nacida alergico alergica
prefiero odio detesto quiero necesito trabajo vivo estudio hablo toco juego tengo conduzco uso utilizo bebo escucho soy
prefere aime adore deteste veut travaille habite vit etudie parle joue possede conduit utilise mange boit ecoute
apprend interesse interessee marie mariee nee allergique`
    .split(/\s+/)
    .map(word => foldText(word)),
)
/** A label before its value, or the word "user". */
const profileNote = /^[^\s:]{1,30}(?: [^\s:]{1,30}){0,3}:\s|\buser\b/
/** The first word of a folded text, behind a negation. */
const noteBeginning = /^(?:no |ne |n')?([a-z]{2,20})(?![\p{L}\p{N}])/u

/** Whether a text is a note about a person without a pronoun: "Name: Ada", "Prefers dark mode", "Vive en Madrid". */
export function isProfileNote(text: string): boolean {
  const folded = foldText(text.slice(0, 400))
  return profileNote.test(folded) || noteBeginnings.has(noteBeginning.exec(folded)?.[1] ?? '')
}

/** Whether a sentence gives a task that needs nothing of what a person has told. */
export const isImpersonalTask = (sentence: string): boolean =>
  beginsWithVerb(sentence, [taskVerbs]) && !isPersonalTask(sentence)

/** Whether a sentence gives a task or asks for something to be made or told. */
export const isRequest = (sentence: string): boolean =>
  beginsWithVerb(sentence, [taskVerbs, requestVerbs])

/** Whether a sentence asks for anything that has nothing to do with the person who asks. */
export const isImpersonalRequest = (sentence: string): boolean =>
  isRequest(sentence) && !isPersonalTask(sentence)

const firstWord = /^[\p{P}\p{S}\s]{0,20}(?:please\s{1,9})?([^\s,.:;!?'’]{0,40})/u
const notLatin = /[\u0300-\uffff]/

function beginsWithVerb(sentence: string, verbs: readonly ReadonlySet<string>[]): boolean {
  const text = foldText(sentence.slice(0, 400))
  const [, first = ''] = firstWord.exec(text) ?? []
  return verbs.some(list => list.has(first)) || (notLatin.test(text) && cjkTasks.test(text))
}

/** "Write me a letter" is for the person, not of the person. */
const isPersonalTask = (sentence: string): boolean =>
  personal.test(foldText(sentence.slice(0, 400)).replace(/^(?:\S+\s+)(?:me|mir|moi|nos)\s/u, ''))
