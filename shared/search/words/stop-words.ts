/** English function words; not indexed. */
export const stopWords: ReadonlySet<string> = new Set(
  `a an the and or but nor so yet if then than that this these those there here
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
herself it its itself they them their theirs themselves
am is are was were be been being do does did doing done have has had having will would shall should can could may
might must ought
im ive id ill youre youve youd youll hes shes its were weve wed theyre theyve theyd theyll thats theres whats whos
dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont wouldnt cant couldnt shouldnt mustnt aint lets
to of in on at by for from with about into onto over under up down out off as per via
not no too very just also even only quite rather really still already
what which who whom whose when where why how
some any each every both either neither such own same other another
oh ah hm hmm uh um yeah yes yep nope ok okay hey hi hello well`.split(/\s+/),
)

/** English stop words that are also words of other languages. */
const ambiguousStopWords: ReadonlySet<string> = new Set(
  'a am an as at be by do had has he her here him i in is it its me no nor of off on only or over own so than to too up us was we were will'.split(
    ' ',
  ),
)

/** Stop words of English only: signs of an English text. */
export const englishOnlyStopWords: ReadonlySet<string> = new Set(
  [...stopWords].filter(word => !ambiguousStopWords.has(word)),
)

/** Spelt like a usual English word: no sign of another language. */
const englishHomographs: ReadonlySet<string> = new Set(
  'bin con den der die dir don dos era ha hat hay her man main met mine os pa per plus pour ser sin son sue sur ton van ve via vi war'.split(
    ' ',
  ),
)

/**
 * Function words of other languages in Latin letters. None is a common English word, so a single one
 * marks a text without English function words as foreign.
 */
export const foreignStopWords: ReadonlySet<string> = new Set(
  `el la los las un una unos unas del al lo le les de en y e o u que qué con por para como cómo pero más
muy mi mis tu tus su sus se es está están fue era son ha he han hay cuando cuándo donde dónde quien quién cual
nos nuestro nuestra esta este estos estas eso porque sin sobre desde hasta también
der das den dem des ein eine einen einem einer eines und oder aber nicht ist sind bin war waren hat habe haben
hatte ich du er sie wir ihr mich mir dich dir uns euch mein meine meinen meinem meiner dein deine sein seine
ihre auf mit von zu zum zur im ins für über unter nach bei aus wie wo wann wer wen warum welche welcher welches
auch noch schon nur sehr dass wenn als wird werden wurde kein keine
le la les un une des du de et ou mais ne pas je tu il elle nous vous ils elles mon ma mes ton ta tes son sa ses
notre votre leur au aux dans sur avec pour par qui que quoi où quand comment est sont était a ai as avons ont
ce cet cette ces plus très chez
il lo gli un uno una di del della dei delle che e è sono ho ha hanno con per tra fra non mi ti si ci vi mio mia
miei tuo tua suo sua nel nella sul sulla dal dalla quando dove chi come cosa perché più molto anche
o os as um uma do da dos das no na nos nas em com por para que não eu ele ela nós eles elas meu minha seu sua
é foi era são está quando onde quem como qual mais muito também
de het een en van ik je jij hij zij wij mijn jouw zijn haar ons met voor op te naar bij niet wat waar wanneer wie
och att det som en ett är jag du han hon vi ni min mitt mina din med för på av inte när var vem
og det som en et er jeg du han hun vi min mitt mine med for på av ikke når hvor hvem
i w z na do się nie że jest są był była mój moja moje ja ty on ona my kiedy gdzie kto jak
ve bir bu için ile çok ben sen biz ne zaman nerede kim`
    .split(/\s+/)
    .flatMap(word => [word, word.normalize('NFD').replace(/[\u0300-\u036f]/g, '')])
    .filter(word => word.length > 1 && !stopWords.has(word) && !englishHomographs.has(word)),
)

/** Function words of languages in other scripts, folded: in questions they say nothing of the subject. */
export const otherStopWords: ReadonlySet<string> = new Set(
  `я меня мне мной мой моя мое мои моей моего мою моих ты тебя тебе он она оно они мы нас нам наш наша наше наши нашу
у на в во с со к ко о об от до из за по для при и а но не ни ли же бы что кто как где когда куда какой какая какое
какие каком какого это эта этот был была было были есть чей
انا لي عندي من ما ماذا في على الى عن مع هل اين متى كيف كم اي هو هي هذا هذه كان كانت التي الذي لنا نحن
मैं मेरा मेरी मेरे मुझे हम हमारा हमारी हमारे का की के को से में पर है हैं था थी थे हूँ क्या कौन कहाँ कब कैसे और
나 저 내 제 우리 나의 저의 는 은 이 가 을 를 에 의 무엇 어디 언제 누구`.split(/\s+/),
)

/** Characters of Chinese and Japanese words of the same kind. */
export const functionCharacters =
  /^[我你您他她的是在了吗嗎呢么麼什哪谁誰几多少个個里裡这這那和有跟对候就都也はがをにのでとへもかなすまたしてるですいらこそあれど何私僕]+$/u
