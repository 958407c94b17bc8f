/** Makes a list of orders. The builder has room for more. */
public class Main {
    public static void main(String[] words) {
        StringBuilder list = new StringBuilder();
        for (int n = 0; n < 21000; n++) {
            list.append("order ").append(n).append(": ").append(n * 7919L % 1000).append(" pieces\n");
        }
        System.out.println(list.length() + " letters");
    }
}
