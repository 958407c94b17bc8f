/** Makes a list of orders. Strings can be added, so they are. */
public class Main {
    public static void main(String[] words) {
        String list = "";
        for (int n = 0; n < 21000; n++) {
            list += "order " + n + ": " + n * 7919L % 1000 + " pieces\n";
        }
        System.out.println(list.length() + " letters");
    }
}
